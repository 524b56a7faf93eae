import { identity } from '../../entities/identity.ts'
import type { Identity } from '../../entities/identity.ts'
import { normalise } from '../../entities/normalise.ts'
import type { RequestMode } from '../../entities/schema.ts'
import type { Json, JsonObject } from '../../lib/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { latest } from '../consistency.ts'
import { judgedNowMs } from '../auth/judged-now.ts'
import type { ApiParts } from '../parts.ts'
import { enrollmentStep } from './enrollment.ts'
import type { NewEnrollment } from './enrollment.ts'
import type { Preparer } from './preparer.ts'

/**
 * User, Device and Service are old words for one type, `Default`, which every identity made here
 * has. One that is made with an enrollment is there with it or not at all.
 */
export function identityPreparer(parts: ApiParts): Preparer {
  return async (_call, mode, body, id) => {
    await judgeType(parts, mode, body['type'], id)
    const prepared = normalise(identity, mode, body)
    const asked = mode === 'create' ? enrollmentIn(body['enrollment']) : null
    if (asked === null) return prepared
    const expiresAtMs = judgedNowMs(parts) + parts.limits.identityEnrollmentMs
    const step = await enrollmentStep(parts, {
      ...asked,
      of: 'identityId',
      subjectId: id,
      expiresAtMs,
    })
    return { ...prepared, also: [step] }
  }
}

/** The first of those asked for. */
function enrollmentIn(
  asked: Json | undefined,
): Pick<NewEnrollment, 'method' | 'caId' | 'username'> | null {
  const { ott, ottca, updb } = (asked ?? {}) as JsonObject
  if (ott === true) return { method: 'ott' }
  if (typeof ottca === 'string' && ottca !== '') return { method: 'ottca', caId: ottca }
  if (typeof updb === 'string' && updb !== '') return { method: 'updb', username: updb }
  return null
}

/** An identity has the type Router for as long as its router makes it one. */
async function judgeType(
  parts: ApiParts,
  mode: RequestMode,
  type: Json | undefined,
  id: string,
): Promise<void> {
  if (type === undefined || type === null) return
  if (mode === 'create') {
    if (type !== 'Router') return
    throw fieldProblem('type', 'may not create identities with given typeId', type)
  }
  const known = await latest(parts, () => parts.state.get<Identity>('identity', id))
  if (known === undefined) {
    throw new Problem('NOT_FOUND', { detail: `identity with id ${id} not found` })
  }
  const isRouter = known.typeId === 'Router'
  if (isRouter === (type === 'Router')) return
  const reason = isRouter
    ? 'may not change type of router identities'
    : 'may not change type to router'
  throw fieldProblem('type', reason, type)
}
