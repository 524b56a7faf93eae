import type { Clock } from '../../lib/clock.ts'
import type { EventPosition, EventReader } from '../../ports/events.ts'
import type { EmittedEvent } from '../emitted-event.ts'
import type { EventBus } from '../event-bus.ts'
import { eventLimits } from '../limits.ts'

/** Reasons for closing a stream, as they are sent to its client. */
export const streamCloseReasons = {
  slow: 'the client reads too slowly; resume after the last event that was read',
  stopping: 'the controller is stopping; continue at another one',
} as const

/**
 * Output to a stream's client. Its methods write immediately; they return false when the client
 * must read before more is written.
 */
export interface EventStreamOutput {
  /** @returns false if the caller should write nothing more until `onDrain` is called. */
  event(event: EmittedEvent): boolean
  /** Reports that events after `from` may be missing. The stream is complete after `to`. */
  gap(from: EventPosition, to: EventPosition): boolean
  /** Reports that the client has received all events up to this position. */
  heartbeat(at: EventPosition): boolean
  /**
   * Sends the reason and closes the stream. A client that does not read the reason is disconnected
   * after a while.
   */
  close(reason: string): void
}

/**
 * Stream of events to one reader. The stream takes events from the ring at the speed of its reader,
 * and stores none itself.
 */
export class EventStream {
  readonly reader: EventReader
  readonly #bus: EventBus
  readonly #output: EventStreamOutput
  readonly #clock: Clock
  readonly #unwant: () => void
  #next: number
  #after: EventPosition | null
  #blockedSinceMs: number | null = null
  #isClosed = false
  #heartbeatAtMs: number

  constructor(bus: EventBus, clock: Clock, reader: EventReader, output: EventStreamOutput) {
    this.#bus = bus
    this.#clock = clock
    this.reader = reader
    this.#output = output
    this.#after = reader.after
    this.#unwant = bus.want(reader.filter.namespaces)
    this.#heartbeatAtMs = clock.monotonicMs()
    this.#next = bus.ring.end
    if (reader.after !== null) this.#resume(reader.after)
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Must be called when the client has disconnected. */
  gone(): void {
    this.#isClosed = true
    this.#unwant()
  }

  drained(): void {
    this.#blockedSinceMs = null
    this.pump()
  }

  /** Writes events until none are left or the client must read first. */
  pump(): void {
    const { ring } = this.#bus
    if (this.#isClosed || this.#blockedSinceMs !== null || this.#next >= ring.end) return
    // Checked before the events are sent, because one of these events may have ended the reader's
    // session.
    const refusal = this.reader.refusal()
    // @guard events-of-others--session
    if (refusal !== null) {
      this.close(refusal)
      return
    }
    for (;;) {
      this.#next = ring.find(this.#next, this.reader.filter)
      if (this.#next >= ring.end) return
      const event = ring.at(this.#next)
      if (event === undefined) {
        this.close(streamCloseReasons.slow)
        return
      }
      this.#next += 1
      if (this.#isSeen(event)) continue
      // @guard slow-event-readers--pace
      if (!this.#note(this.#output.event(event))) return
    }
  }

  /**
   * Checks each second whether the caller is still permitted, whether the client still reads, and
   * whether a heartbeat is due.
   */
  look(): void {
    if (this.#isClosed) return
    const nowMs = this.#clock.monotonicMs()
    const refusal = this.reader.refusal()
    if (refusal !== null) this.close(refusal)
    else if (this.#blockedSinceMs !== null) {
      // @guard slow-event-readers--stall
      if (nowMs - this.#blockedSinceMs > eventLimits.eventStallMs)
        this.close(streamCloseReasons.slow)
    } else if (nowMs - this.#heartbeatAtMs >= eventLimits.eventHeartbeatMs) {
      this.#heartbeatAtMs = nowMs
      if (this.#next >= this.#bus.ring.end) this.#note(this.#output.heartbeat(this.#bus.position))
    }
  }

  close(reason: string): void {
    if (this.#isClosed) return
    this.gone()
    this.#output.close(reason)
  }

  /**
   * Resumes after a position. Reports a gap if the position belongs to another generation, or
   * events after it were evicted from the ring.
   */
  #resume(after: EventPosition): void {
    const { ring, generation } = this.#bus
    const isOther = after.generation !== generation
    const found = isOther ? { number: ring.first, isGap: true } : ring.after(after)
    this.#next = found.number
    if (!found.isGap) return
    this.#next = ring.first
    this.#after = null
    this.#note(this.#output.gap(after, ring.floor))
  }

  /**
   * Whether the client has already received the event from another controller, which had applied
   * more log entries than this controller.
   */
  #isSeen({ position }: EmittedEvent): boolean {
    const after = this.#after
    if (after === null) return false
    if (
      position.index < after.index ||
      (position.index === after.index && position.sequence <= after.sequence)
    ) {
      return true
    }
    this.#after = null
    return false
  }

  #note(isWritable: boolean): boolean {
    if (!isWritable) this.#blockedSinceMs ??= this.#clock.monotonicMs()
    return isWritable
  }
}
