import { identity } from '../../entities/kinds/identity.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { RequestMode } from '../../entities/define-entity.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { toStoredRoleAttributeExpiries } from './access-expiry.ts'
import { enrollmentBatchStep, type NewEnrollment } from './enrollment.ts'
import type { WritePreparer } from './write-preparer.ts'
import { type Clock, proposalNowMs } from '../../lib/clock.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { ApiLimits } from '../limits.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { ApiVersionsKey } from '../api-deps.ts'

interface IdentityPreparerDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly jwt: JwtSigner
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
}

/**
 * Prepares an identity. If the request to create it also requests an enrollment, one log entry
 * creates both.
 */
export function identityPreparer(deps: IdentityPreparerDeps): WritePreparer {
  return async (_call, mode, body, id) => {
    const typeId = await typeIn(deps, mode, body['type'], id)
    const normal = normalizeBody(identity, mode, body)
    const ofType = typeId === null ? {} : { typeId }
    const fields = { ...normal.fields, ...ofType, ...toStoredRoleAttributeExpiries(body) }
    const prepared = { ...normal, fields }
    const asked = mode === 'create' ? enrollmentIn(body['enrollment']) : null
    if (asked === null) return prepared
    const expiresAtMs = proposalNowMs(deps) + deps.limits.identityEnrollmentMs
    const step = await enrollmentBatchStep(deps, {
      ...asked,
      of: 'identityId',
      subjectId: id,
      expiresAtMs,
    })
    return { ...prepared, also: [step] }
  }
}

/** The first requested enrollment method in the order ott, ottca, updb; null if there is none. */
function enrollmentIn(
  asked: Json | undefined,
): Pick<NewEnrollment, 'method' | 'caId' | 'username'> | null {
  const { ott, ottca, updb } = (asked ?? {}) as JsonObject
  if (ott === true) return { method: 'ott' }
  if (typeof ottca === 'string' && ottca !== '') return { method: 'ottca', caId: ottca }
  if (typeof updb === 'string' && updb !== '') return { method: 'updb', username: updb }
  return null
}

/**
 * The identity type to store; null if the body has none, or if the identity keeps the type Router.
 * An identity has the type Router if and only if it belongs to a router.
 */
async function typeIn(
  deps: IdentityPreparerDeps,
  mode: RequestMode,
  type: Json | undefined,
  id: string,
): Promise<Json> {
  if (type === undefined || type === null) return null
  if (mode === 'create') {
    if (type !== 'Router') return type
    throw fieldProblem('type', 'may not create identities with given typeId', type)
  }
  const known = await deps.reads.latest(() => deps.state.get('identity', id))
  if (known === undefined) {
    throw new Problem('NOT_FOUND', { detail: `identity with id ${id} not found` })
  }
  const isRouter = known.typeId === 'Router'
  if (isRouter === (type === 'Router')) return isRouter ? null : type
  const reason = isRouter
    ? 'may not change type of router identities'
    : 'may not change type to router'
  throw fieldProblem('type', reason, type)
}
