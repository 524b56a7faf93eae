import type { ClusterNode } from '../../cluster/cluster-node.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { ControllerEvents } from '../../events/open-events.ts'
import type { EventLines } from '../../events/sinks/stream-sink.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import { systemClock } from '../../lib/clock.ts'

export type { EventLines, ControllerEvents }

/** Creates the source of events before the first entry is applied, so that no event is missed. */
export function openEvents(
  parts: {
    readonly config: Pick<ControllerConfig, 'events' | 'id'>
    readonly eventLines?: EventLines | null
  },
  { generation }: { readonly generation: number },
  state: StateMachine,
  startedAtMs: number,
): ControllerEvents {
  const { events: options, id: selfId } = parts.config
  const lines = parts.eventLines ?? null
  return new ControllerEvents({
    generation,
    startedAtMs,
    lines,
    selfId,
    options,
    state,
    clock: systemClock,
  })
}

/**
 * Starts the events about the cluster and the configured event file.
 * @returns a function that stops both.
 */
export function startEvents(
  events: ControllerEvents,
  clusterNode: ClusterNode,
  { events: { file } }: Pick<ControllerConfig, 'events'>,
): () => Promise<void> {
  events.start({
    cluster: clusterNode,
    alarms: () => clusterNode.alarms.list(),
    vitals: () => clusterNode.vitals,
    onFileFault: (reason) => {
      if (reason === null) clusterNode.alarms.clear('EVENTS_NOT_WRITTEN')
      else {
        clusterNode.alarms.raise('EVENTS_NOT_WRITTEN', { path: file.path ?? '', fault: reason })
      }
    },
  })
  return () => events.stop()
}
