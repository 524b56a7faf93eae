import {
  comparePositions,
  type EventFilter,
  type EventPosition,
  positionText,
} from '../../ports/events.ts'
import type { EmittedEvent } from '../emitted-event.ts'
import type { EventBus } from '../event-bus.ts'

/** Lines for a sink, and the number of events in them; the line that marks a gap does not count. */
interface SinkBatch {
  readonly lines: string
  readonly events: number
}

/**
 * Reads events for a file or a stream. The reader takes events from the ring in batches, so a slow
 * sink delays no other reader and needs no more memory than the ring. Events that were evicted from
 * the ring before they were read are counted, and a line marks the gap.
 */
export class SinkReader {
  readonly #bus: EventBus
  readonly #filter: EventFilter
  readonly #unwant: () => void
  #next: number
  #written: EventPosition | null
  #lost = 0

  /**
   * @param written last position that an earlier process wrote. When log entries up to this
   * position are applied again, their events are not written again.
   */
  constructor(bus: EventBus, filter: EventFilter, written: EventPosition | null = null) {
    this.#bus = bus
    this.#filter = filter
    this.#next = bus.ring.first
    this.#written = written
    this.#unwant = bus.want(filter.namespaces)
  }

  get lost(): number {
    return this.#lost
  }

  close(): void {
    this.#unwant()
  }

  /** The next lines; null when there is nothing to write. */
  take(bytesMax: number): SinkBatch | null {
    const { ring } = this.#bus
    let [lines, events] = [this.#gapLine(), 0]
    while (lines.length < bytesMax) {
      this.#next = ring.find(this.#next, this.#filter)
      const event = ring.at(this.#next)
      if (event === undefined) break
      this.#next += 1
      if (this.#isWritten(event)) continue
      lines += `${event.text}\n`
      events += 1
    }
    return lines === '' ? null : { lines, events }
  }

  /**
   * Whether an earlier process wrote the event. A live event is always new, because it is not in
   * the log and so is not repeated.
   */
  #isWritten({ isReplicated, position }: EmittedEvent): boolean {
    if (this.#written === null || !isReplicated) return false
    return comparePositions(position, this.#written) <= 0
  }

  #gapLine(): string {
    const { ring, selfId } = this.#bus
    const missed = ring.first - this.#next
    if (missed <= 0) return ''
    this.#next = ring.first
    this.#lost += missed
    return `${missingEventsLine(selfId, { to: ring.floor, count: missed })}\n`
  }
}

/**
 * The last line that the file sink writes when it stops: up to this position, the file contains all
 * events that match the filter, except those in gaps that a line marks.
 */
export function endOfStreamLine(selfId: string, at: EventPosition): string {
  return JSON.stringify({
    namespace: 'events',
    event_src_id: selfId,
    timestamp: new Date().toISOString(),
    event_type: 'stopped',
    event_id: `${positionText(at)}@${selfId}`,
  })
}

/**
 * A line that marks missing events in the output of a sink.
 * @param count number of missing events in all namespaces, so the reader's filter may match fewer;
 * undefined if unknown.
 */
export function missingEventsLine(
  selfId: string,
  {
    from,
    to,
    count,
  }: { readonly from?: EventPosition; readonly to: EventPosition; readonly count?: number },
): string {
  return JSON.stringify({
    namespace: 'events',
    event_src_id: selfId,
    timestamp: new Date().toISOString(),
    event_type: 'gap',
    ...(from === undefined ? {} : { from: positionText(from) }),
    to: positionText(to),
    ...(count === undefined ? {} : { count }),
  })
}
