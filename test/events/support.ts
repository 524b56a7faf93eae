import { controllerOptions } from '../../src/config/controller/options.ts'
import {
  type EventOptions,
  ControllerEvents,
  type EventsDeps,
} from '../../src/events/open-events.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { ClusterView } from '../../src/ports/cluster-view.ts'
import { ZERO_CONSENSUS_STATS } from '../../src/ports/stats.ts'

const { fields } = controllerOptions.events
const { file, stdout } = fields

/** Event options of a configuration that contains none. */
export const eventDefaults: EventOptions = {
  file: {
    path: null,
    namespaces: file.fields.namespaces.default,
    bytesMax: file.fields.bytesMax.default,
    keep: file.fields.keep.default,
    fsync: file.fields.fsync.default,
  } as EventOptions['file'],
  stdout: { namespaces: stdout.fields.namespaces.default as readonly [] },
  metricsIntervalMs: 60_000,
  entityCountIntervalMs: 300_000,
  metricFilter: '',
  sourceFilter: '',
}

type Sources = Pick<
  ClusterView,
  'selfId' | 'generation' | 'members' | 'leaderId' | 'leaderContactMs'
>

/** The cluster as another of its controllers would report it. */
export function clusterSeenBy(selfId: string, cluster: Sources): Sources {
  return {
    selfId,
    generation: cluster.generation,
    members: () => cluster.members(),
    leaderId: () => cluster.leaderId(),
    leaderContactMs: () => cluster.leaderContactMs(),
  }
}

/** The events of one controller in a cluster. */
export function eventsOf(
  state: EventsDeps['state'],
  cluster: Sources,
  clock: Clock,
  options: Partial<EventOptions> = {},
): ControllerEvents {
  const { selfId, generation } = cluster
  const events = new ControllerEvents({
    state,
    clock,
    selfId,
    generation,
    startedAtMs: clock.nowMs(),
    lines: null,
    options: { ...eventDefaults, ...options },
  })
  events.start({
    cluster,
    alarms: () => [],
    vitals: () => ZERO_CONSENSUS_STATS,
    onFileFault: () => undefined,
  })
  return events
}
