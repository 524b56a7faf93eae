import {
  comparePositions,
  type EventFilter,
  type EventPosition,
  positionText,
} from '../../ports/events.ts'
import type { EmittedEvent } from '../emitted-event.ts'
import type { EventBus } from '../event-bus.ts'

/** Lines for a sink, and how many events were lost before the first of them. */
interface SinkBatch {
  readonly lines: string
  readonly events: number
}

/**
 * Reader for a file or stream. It takes events from the ring in batches, so a slow sink delays no
 * other reader and needs no more memory than the ring. Events that have left the ring unread are
 * counted, and a line marks the gap.
 */
export class SinkReader {
  readonly #bus: EventBus
  readonly #filter: EventFilter
  readonly #unwant: () => void
  #next: number
  #written: EventPosition | null
  #lost = 0

  /**
   * @param written last position that an earlier process wrote. Events of entries up to there are
   * not written again when the entries are applied again.
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

  /** Null when there is no event. */
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

  /** A live event is always new, no matter which log position it has. */
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
    return `${gapLine(selfId, { to: ring.floor, count: missed })}\n`
  }
}

/** A line that a stopping writer adds: the file is complete up to this position. */
export function stoppedLine(selfId: string, at: EventPosition): string {
  return JSON.stringify({
    namespace: 'events',
    event_src_id: selfId,
    timestamp: new Date().toISOString(),
    event_type: 'stopped',
    event_id: `${positionText(at)}@${selfId}`,
  })
}

/**
 * A line that marks missing events in a file.
 * @param count maximum number of missing events, of all namespaces; undefined: unknown.
 */
export function gapLine(
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
