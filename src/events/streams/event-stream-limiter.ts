import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { Clock } from '../../lib/clock.ts'
import type { EventNamespace } from '../../lib/event-namespaces.ts'
import type { ByteStream } from '../../ports/byte-stream.ts'
import type { EventReader, EventStreams } from '../../ports/events.ts'
import type { NetworkValidations } from '../../ports/network-validations.ts'
import type { EventBus } from '../event-bus.ts'
import { eventLimits } from '../limits.ts'
import { entityTypeNames } from '../published-records.ts'
import { streamCloseReasons, EventStream } from './event-stream.ts'
import { ManagementChannel } from './management-channel.ts'
import { ServerSentEvents } from './server-sent-events.ts'
import type { WebSocketUpgradeRequest } from './event-socket.ts'

interface StreamRoomDeps {
  readonly bus: EventBus
  readonly clock: Clock
  /** Number of lost events and observations, see `ControllerEvents.lost`. */
  readonly lost: () => number
}

const LOOK_MS = 1000
const nothingWanted = {
  namespaces: new Set<EventNamespace>(),
  metrics: null,
  sources: null,
  entityTypes: null,
} as const

/**
 * The HTTP clients that read events of one controller. Limits their number, for each caller and in
 * total.
 */
export class EventStreamLimiter implements EventStreams {
  readonly #deps: StreamRoomDeps
  readonly entityTypes = entityTypeNames
  readonly #streams = new Set<EventStream>()
  #stop: (() => void)[] = []

  constructor(deps: StreamRoomDeps) {
    this.#deps = deps
  }

  get lost(): number {
    return this.#deps.lost()
  }

  /** Number of open streams. */
  get size(): number {
    return this.#streams.size
  }

  start(): void {
    const stopLooks = periodicScheduler.every(LOOK_MS, () => {
      this.#each((stream) => stream.look())
    })
    const unlisten = this.#deps.bus.onEvents(() => this.#each((stream) => stream.pump()))
    this.#stop = [stopLooks, unlisten]
  }

  stop(): void {
    for (const stop of this.#stop.splice(0)) stop()
    this.#each((stream) => stream.close(streamCloseReasons.stopping))
  }

  hasRoomFor(identityId: string): boolean {
    const { eventStreamsMax, eventStreamsPerCallerMax } = eventLimits
    if (this.#streams.size >= eventStreamsMax) return false
    let own = 0
    for (const { reader } of this.#streams) if (reader.identityId === identityId) own += 1
    // @guard slow-event-readers--streams
    return own < eventStreamsPerCallerMax
  }

  open(reader: EventReader): ByteStream {
    const { bus, clock } = this.#deps
    const output = new ServerSentEvents()
    if (reader.after === null) output.ready(bus.selfId, bus.position)
    const stream = this.#add(new EventStream(bus, clock, reader, output))
    output.onDrain = () => stream.drained()
    output.onGone = () => this.#gone(stream)
    stream.pump()
    return output
  }

  upgrade(
    upgrade: WebSocketUpgradeRequest,
    reader: Omit<EventReader, 'after' | 'filter'>,
    permits: (namespace: EventNamespace) => boolean,
    validations: NetworkValidations,
  ): void {
    const { bus, clock } = this.#deps
    // The connection is counted as a stream even before its request arrives. Otherwise a client
    // could open any number of connections without sending a request.
    let stream: EventStream | null = null
    const channel: ManagementChannel = new ManagementChannel(upgrade, {
      permits,
      validations,
      onRequest: (filter) => {
        if (stream !== null) this.#gone(stream)
        stream = this.#add(new EventStream(bus, clock, { ...reader, filter, after: null }, channel))
      },
      onDrain: () => stream?.drained(),
      onClose: () => {
        if (stream !== null) this.#gone(stream)
      },
    })
    const waiting = { ...reader, filter: nothingWanted, after: null }
    stream ??= this.#add(new EventStream(bus, clock, waiting, channel))
  }

  #add(stream: EventStream): EventStream {
    this.#streams.add(stream)
    return stream
  }

  #gone(stream: EventStream): void {
    stream.gone()
    this.#streams.delete(stream)
  }

  #each(run: (stream: EventStream) => void): void {
    for (const stream of Array.from(this.#streams)) {
      run(stream)
      if (stream.isClosed) this.#streams.delete(stream)
    }
  }
}
