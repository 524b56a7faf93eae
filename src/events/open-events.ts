import type { Clock } from '../lib/clock.ts'
import type { EventNamespace } from '../lib/event-namespaces.ts'
import { parsePattern } from '../lib/text/text-pattern.ts'
import type { ChangeFeed } from '../ports/change-feed.ts'
import type { ClusterView } from '../ports/cluster-view.ts'
import type { EventFilter, EventStreams } from '../ports/events.ts'
import type { ObservationSink } from '../ports/observations.ts'
import type { StateView } from '../ports/state-view.ts'
import type { ConsensusStats } from '../ports/stats.ts'
import { ClusterWatch, type RaisedAlarm } from './sources/cluster-watch.ts'
import { DialCounter } from './sources/dial-counter.ts'
import { EventBus } from './event-bus.ts'
import { eventLimits } from './limits.ts'
import { ObservationEvents } from './sources/observation-events.ts'
import { LogEntryEvents } from './sources/log-entry-events.ts'
import { MetricSampler } from './sources/metric-sampler.ts'
import type { EventFileOptions } from './sinks/event-file.ts'
import { FileSink } from './sinks/file-sink.ts'
import { type EventLines, StreamSink } from './sinks/stream-sink.ts'
import { EventStreamLimiter } from './streams/event-stream-limiter.ts'

/** Event options in the configuration. */
export interface EventOptions {
  readonly file: Omit<EventFileOptions, 'path' | 'isSynced'> & {
    readonly path: string | null
    readonly namespaces: readonly EventNamespace[]
    readonly fsync: boolean
  }
  readonly stdout: { readonly namespaces: readonly EventNamespace[] }
  readonly metricsIntervalMs: number
  readonly entityCountIntervalMs: number
  readonly metricFilter: string
  readonly sourceFilter: string
}

export interface EventsDeps {
  readonly selfId: string
  readonly generation: number
  readonly startedAtMs: number
  readonly options: EventOptions
  readonly state: ChangeFeed &
    Pick<StateView, 'appliedIndex' | 'count' | 'findAll' | 'get'> & {
      readonly routers: { of(routerId: string): unknown }
    }
  readonly clock: Clock
  /** Standard output; null: no events are written to it. */
  readonly lines: EventLines | null
}

/** Sources of events that exist only after the controller has joined its cluster. */
interface EventSources {
  readonly cluster: Pick<ClusterView, 'selfId' | 'members' | 'leaderId' | 'leaderContactMs'>
  readonly alarms: () => readonly RaisedAlarm[]
  readonly vitals: () => ConsensusStats
  /**
   * Called with the reason when events cannot be written, and with null when writing succeeds
   * again.
   */
  readonly onFileFault: (reason: string | null) => void
}

/**
 * The events of one controller. Created before the first entry is applied, so that no event is
 * missed; started once the controller has joined its cluster.
 */
export class ControllerEvents {
  readonly bus: EventBus
  readonly streams: EventStreams
  readonly publishFact: ObservationSink
  readonly #deps: EventsDeps
  readonly #records: LogEntryEvents
  readonly #live: ObservationEvents
  readonly #dials: DialCounter
  readonly #room: EventStreamLimiter
  #file: FileSink | null = null
  #stdout: StreamSink | null = null
  #watch: ClusterWatch | null = null
  #sampler: MetricSampler | null = null

  constructor(deps: EventsDeps) {
    const { selfId, generation, startedAtMs, state, clock } = deps
    this.#deps = deps
    this.bus = new EventBus({
      selfId,
      generation,
      startedAtMs,
      limits: eventLimits,
      appliedIndex: () => state.appliedIndex,
    })
    this.#records = new LogEntryEvents(this.bus, state)
    const isConnected = (routerId: string): boolean => state.routers.of(routerId) !== null
    this.#dials = new DialCounter(clock.nowMs())
    const dials = this.#dials
    this.#live = new ObservationEvents({ bus: this.bus, clock, state, dials, isConnected })
    this.publishFact = this.#live.publishFact
    this.#room = new EventStreamLimiter({ bus: this.bus, clock, lost: () => this.lost })
    this.streams = this.#room
  }

  /**
   * Number of events that were lost before they could be written to the file or to standard output,
   * plus the number of observations that were dropped from the queue.
   */
  get lost(): number {
    return (this.#file?.lost ?? 0) + (this.#stdout?.lost ?? 0) + this.#live.dropped
  }

  start(sources: EventSources): void {
    const { bus } = this
    const { clock, options, state } = this.#deps
    const { cluster, vitals, alarms, onFileFault } = sources
    const { metricsIntervalMs, entityCountIntervalMs } = options
    this.#watch = new ClusterWatch({ bus, cluster, alarms, clock, publishFact: this.publishFact })
    this.#sampler = new MetricSampler({
      bus,
      cluster,
      state,
      vitals,
      clock,
      metricsIntervalMs,
      entityCountIntervalMs,
      dials: this.#dials,
    })
    this.#openSinks(onFileFault)
    this.#watch.start()
    this.#sampler.start()
    this.#room.start()
  }

  /**
   * Must be called before the listeners are closed: a listener closes only after its connections,
   * including the open streams, have ended.
   */
  closeStreams(): void {
    this.#room.stop()
  }

  async stop(): Promise<void> {
    this.closeStreams()
    this.#watch?.stop()
    this.#sampler?.stop()
    this.#records.stop()
    this.#stdout?.stop()
    await this.#file?.stop()
  }

  #openSinks(onFault: EventSources['onFileFault']): void {
    const { lines, options } = this.#deps
    const { file, stdout } = options
    if (lines !== null && stdout.namespaces.length > 0) {
      this.#stdout = new StreamSink(this.bus, this.#filter(stdout.namespaces), lines)
    }
    if (file.path === null) return
    const { path, bytesMax, keep, fsync: isSynced } = file
    this.#file = new FileSink({
      bus: this.bus,
      filter: this.#filter(file.namespaces),
      onFault,
      options: { path, bytesMax, keep, isSynced },
    })
    this.#file.start()
  }

  #filter(namespaces: readonly EventNamespace[]): EventFilter {
    const { metricFilter, sourceFilter } = this.#deps.options
    const patternOf = (text: string) => (text === '' ? null : parsePattern(text))
    return {
      namespaces: new Set(namespaces),
      metrics: patternOf(metricFilter),
      sources: patternOf(sourceFilter),
      entityTypes: null,
    }
  }
}
