import { CommandKind } from '../../../proto/gen/command_pb.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import { revocation, type Revocation } from '../../entities/kinds/revocation.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { isShortId } from '../../lib/random.ts'
import { parseUuid } from '../../lib/text/uuid.ts'
import type { WritePlan, WritePreparer } from './write-preparer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'

interface RevocationPreparerDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
}

const kind = 'revocation'

/**
 * Refuses a revocation that cannot match any token, because the caller would believe that a token
 * is revoked.
 */
export function revocationPreparer(deps: RevocationPreparerDeps): WritePreparer {
  return async (_call, mode, body, id) => {
    const prepared = normalizeBody(revocation, mode, body)
    const type = prepared.fields['type']
    const known = await deps.reads.latest(() => deps.state.get(kind, id))
    if (type === 'JTI' && parseUuid(id) === null) {
      throw fieldProblem('id', 'id must be the jti of a token, which is a UUID')
    }
    if (type === 'API_SESSION' && !mayNameSession(deps.state, id)) {
      throw fieldProblem('id', 'id must be that of an API session')
    }
    if (type === 'IDENTITY' && deps.state.get('identity', id) === undefined) {
      throw new Problem('NOT_FOUND', { detail: `identity with id ${id} not found` })
    }
    if (known === undefined || known.type !== type) return prepared
    return { ...prepared, ...inPlaceOf(known) }
  }
}

/**
 * Whether the id may belong to a session. A session that has ended also counts, because its tokens
 * may still be in use.
 */
function mayNameSession(state: StateView, id: string): boolean {
  return isShortId(id) || parseUuid(id) !== null || state.get('apiSession', id) !== undefined
}

/**
 * Replaces an existing revocation with the same id, so that tokens signed after the existing
 * revocation are revoked as well.
 */
function inPlaceOf({ id, revision }: Revocation): Pick<WritePlan, 'first' | 'judgedOn'> {
  return {
    first: [{ kind: CommandKind.ENTITY_DELETE, entity: kind, id }],
    judgedOn: [{ entity: kind, id, revision }],
  }
}
