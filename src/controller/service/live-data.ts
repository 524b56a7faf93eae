import type { ApiDeps } from '../../api/api-deps.ts'
import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { TrafficExchange } from '../../cluster/traffic/cluster-traffic.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import { systemClock } from '../../lib/clock.ts'
import { ControllerPosture } from '../../posture/posture-service.ts'
import type { PostureEnforcerDeps } from '../../posture/posture-enforcer.ts'
import { fabricMetricSources, type ObservationCounts } from './fabric-metric-sources.ts'
import type { RouterService } from './routers.ts'
import { configuredApiLimits } from '../settings.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

export type LiveDataDeps = Pick<
  ApiDeps,
  | 'activity'
  | 'channels'
  | 'circuits'
  | 'dataPath'
  | 'waitingDevices'
  | 'links'
  | 'posture'
  | 'refreshes'
  | 'routerInspections'
  | 'scheduler'
  | 'softState'
  | 'traces'
  | 'traffic'
>

interface LiveSources {
  readonly config: ControllerConfig
  readonly clusterNode: ClusterNode
  readonly machine: StateMachine
  readonly routers: RouterService
  readonly log: PostureEnforcerDeps['logger']
  readonly counted: ObservationCounts
}

/**
 * Creates the parts of the API that use live data instead of records. Callers must create them only
 * once, because they open soft state topics.
 */
export function openLiveData({
  config,
  clusterNode,
  machine,
  routers,
  log,
  counted,
}: LiveSources): LiveDataDeps {
  const { soft } = clusterNode
  const { channels, circuits, links, traces, inspections: routerInspections } = routers
  const posture = new ControllerPosture({
    soft,
    cluster: clusterNode,
    proposer: clusterNode,
    state: machine,
    feed: machine,
    logger: log,
    clock: systemClock,
    scheduler: periodicScheduler,
    limits: configuredApiLimits(config),
  })
  return {
    channels,
    circuits,
    links,
    traces,
    routerInspections,
    posture,
    scheduler: periodicScheduler,
    activity: soft.open('activity'),
    waitingDevices: soft.open('device-log-ins'),
    refreshes: soft.open('refreshes'),
    traffic: new TrafficExchange({
      cluster: clusterNode,
      peers: clusterNode.peers,
      local: counted.traffic,
    }),
    softState: () => soft.counts,
    dataPath: { counts: counted.counts, ...fabricMetricSources(machine) },
  }
}
