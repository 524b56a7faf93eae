import { identity } from '../../entities/identity.ts'
import { normalise } from '../../entities/normalise.ts'
import type { Json } from '../../lib/canonical-json.ts'
import { fieldProblem } from '../../lib/problems.ts'
import type { Preparer } from './preparer.ts'

/** User, Device and Service are old words for one type, `Default`, which every identity made here has. */
export const prepareIdentity: Preparer = (_call, mode, body) => {
  if (body['type'] === 'Router') {
    throw fieldProblem('type', 'an identity of the type Router is made with its router', 'Router')
  }
  if (mode === 'create' && asksForEnrollment(body['enrollment'])) {
    throw fieldProblem(
      'enrollment',
      'enrollments are not offered yet; create the identity without one and give it an authenticator',
    )
  }
  return normalise(identity, mode, body)
}

function asksForEnrollment(enrollment: Json | undefined): boolean {
  if (enrollment === undefined || enrollment === null) return false
  return Object.values(enrollment).some(
    (value) => value !== null && value !== false && value !== '',
  )
}
