import { normalise } from '../../entities/normalise.ts'
import { revocation } from '../../entities/revocation.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { parseUuid } from '../../lib/uuid.ts'
import { latest } from '../consistency.ts'
import type { ApiParts } from '../parts.ts'
import type { Preparer } from './preparer.ts'

/** A revocation that can match no token would look like protection and be none. */
export function revocationPreparer(parts: ApiParts): Preparer {
  return async (_call, mode, body, id) => {
    const prepared = normalise(revocation, mode, body)
    switch (prepared.fields['type']) {
      case 'JTI':
        if (parseUuid(id) !== null) return prepared
        throw fieldProblem('id', 'id must be the jti of a token, which is a UUID')
      case 'IDENTITY': {
        const identity = await latest(parts, () => parts.state.get('identity', id))
        if (identity !== undefined) return prepared
        throw new Problem('NOT_FOUND', { detail: `identity with id ${id} not found` })
      }
      default:
        return prepared
    }
  }
}
