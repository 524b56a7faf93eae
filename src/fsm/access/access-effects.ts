import { type Session, session as sessionKind } from '../../entities/kinds/session.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { removeWithReferences } from '../apply/references.ts'
import { BIND_BIT, DIAL_BIT } from '../records/roles.ts'
import type { State } from '../records/state.ts'
import { accessBits, type AccessEffects } from './access-index.ts'
import { ClientViewMarker } from './client-view-marker.ts'
import type { ClusterState } from './cluster-state.ts'

/**
 * Applies the effects of a log entry on access, once at the end of the entry: marks the client
 * views that the entry changed, and ends the service sessions that no policy grants after the
 * entry. A refused entry has no effects.
 */
export function applyAccessEffects(state: ClusterState, context: CommandContext): void {
  state.access.settle((judgement) => {
    const marker = new ClientViewMarker(state, context, judgement)
    marker.mark()
    endUngranted(state, judgement, context)
    return () => {
      marker.clean()
    }
  })
}

/** Ends service sessions without a grant. Sessions of administrators continue without a grant. */
function endUngranted(state: State, judgement: AccessEffects, context: CommandContext): void {
  if (state.table('session').rows.size === 0) return
  for (const id of doubtful(state, judgement)) {
    const session = state.get('session', id)
    if (session === undefined || isGranted(state, session)) continue
    removeWithReferences(state, sessionKind, session, context)
  }
}

/**
 * Service sessions whose grant the entry may have removed, in the same order on every controller.
 */
function doubtful(state: State, { sides, groups }: AccessEffects): string[] {
  const { indexes } = state.table('session')
  const found = new Set<string>()
  const addAllOf = (field: 'serviceId' | 'identityId', id: string): void => {
    for (const session of indexes.ids(field, id)) found.add(session)
  }
  for (const id of sides.services.keys()) addAllOf('serviceId', id)
  for (const { members, hasLost } of groups) {
    if (hasLost) for (const id of members) addAllOf('identityId', id)
  }
  for (const [id, { before }] of sides.identities) {
    if (before?.isAdmin === true) addAllOf('identityId', id)
  }
  return [...found].sort()
}

function isGranted(state: State, { identityId, serviceId, type }: Session): boolean {
  const identity = state.get('identity', identityId)
  const service = state.get('service', serviceId)
  if (identity === undefined || service === undefined) return false
  if (identity.isAdmin) return true
  return (accessBits(state, identity, service) & (type === 'Bind' ? BIND_BIT : DIAL_BIT)) !== 0
}
