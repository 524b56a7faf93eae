import type { ControllerConfig } from '../../config/controller/options.ts'
import type { CircuitHandler } from '../../fabric/circuits/circuit-handler.ts'
import type { ConnectionHandler } from '../../fabric/clients/connection-handler.ts'
import type { RouterTerminatorValidator } from '../../fabric/clients/router-terminator-validator.ts'
import type { RouterPeersHandler } from '../../fabric/links/router-peers-handler.ts'
import type { RouterConnection } from '../../fabric/router-connection.ts'
import type { OwnInspections } from '../../ports/router-inspections.ts'
import type { RouterModel } from '../../ports/router-model.ts'

export interface OwnInspectionsDeps {
  readonly config: Pick<ControllerConfig, 'raft'>
  readonly model: RouterModel
  readonly timelineId: () => string
  readonly connections: () => Iterable<RouterConnection>
  /** Circuits of this controller; null while this controller does not accept routers. */
  readonly circuits: () => Pick<CircuitHandler, 'costs'> | null
  readonly peers: () => Pick<RouterPeersHandler, 'changedIds'> | null
  readonly validation: () => Pick<RouterTerminatorValidator, 'pending'> | null
  readonly clients: () => Pick<ConnectionHandler, 'byIdentity'> | null
}

/** Nanoseconds per millisecond: OpenZiti prints durations in nanoseconds. */
const NS_PER_MS = 1_000_000

/**
 * Values about the cluster and its routers that an inspection returns, with the fields of an
 * OpenZiti controller, but without the records themselves.
 */
export function createOwnInspections(deps: OwnInspectionsDeps): OwnInspections {
  const { config, model, timelineId } = deps
  const modelIndex = (): object => ({ timeline: timelineId(), index: model.appliedIndex })
  return {
    'cluster-config': () => ({
      ElectionTimeout: config.raft.electionTimeoutMs * NS_PER_MS,
      HeartbeatTimeout: config.raft.heartbeatMs * NS_PER_MS,
    }),
    'connected-routers': () =>
      Array.from(deps.connections(), ({ router: { id, name }, version }) => ({
        id,
        name,
        version: version.version,
      })),
    'identity-connection-statuses': () => ({
      connections: connectionsOf(deps.clients()?.byIdentity() ?? new Map()),
    }),
    'router-data-model': () => ({ ...modelIndex(), entries: modelEntries(model) }),
    'router-data-model-index': modelIndex,
    'router-messaging': () => ({
      routerUpdates: routerUpdates(deps),
      terminatorValidations: deps.validation()?.pending() ?? [],
    }),
    'terminator-costs': () => ({ terminators: deps.circuits()?.costs() ?? [] }),
  }
}

function connectionsOf(byIdentity: ReadonlyMap<string, readonly string[]>): object {
  return Object.fromEntries(
    Array.from(byIdentity, ([id, routerIds]) => [
      id,
      {
        connected_routers: Object.fromEntries(
          routerIds.map((router_id) => [router_id, { router_id, closed: false }]),
        ),
        last_reported_state: 'online',
      },
    ]),
  )
}

/**
 * Number of events of each kind in the router data model: one event for each record, and events of
 * the kind `members` for the members of policies. The records themselves are omitted, because not
 * everyone who may inspect a controller may read them.
 */
function modelEntries(model: RouterModel): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { kind } of model.all()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/** Each connected router, with the routers whose changes the next sweep sends. */
function routerUpdates({ peers, connections }: OwnInspectionsDeps): readonly object[] {
  const changed = peers()?.changedIds() ?? []
  if (changed.length === 0) return []
  const changedRouters = changed.map((id) => ({ id }))
  return Array.from(connections(), ({ router: { id, name } }) => ({
    router: { id, name },
    changedRouters,
    sendInProgress: false,
  }))
}
