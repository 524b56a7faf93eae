import type { EventFilter } from '../../ports/events.ts'
import type { EventBus } from '../event-bus.ts'
import { escapeUnprintable } from '../../lib/text/terminal-text.ts'
import { eventLimits } from '../limits.ts'
import { SinkReader } from './sink-reader.ts'

/** An output in which events and log lines are mixed. */
export interface EventLines {
  /** Writes one or more lines, each of which ends with a newline. */
  write(lines: string): void
  /** True if the program that reads the output is slow, so that the caller should write later. */
  readonly isCrowded: boolean
}

/** Writes events to standard output, no faster than its reader reads them. */
export class StreamSink {
  readonly #lines: EventLines
  readonly #reader: SinkReader
  readonly #unlisten: () => void
  #timer: NodeJS.Timeout | null = null

  constructor(bus: EventBus, filter: EventFilter, lines: EventLines) {
    this.#lines = lines
    this.#reader = new SinkReader(bus, filter)
    this.#unlisten = bus.onEvents(() => this.#work())
    this.#work()
  }

  get lost(): number {
    return this.#reader.lost
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#work()
    this.#unlisten()
    this.#reader.close()
  }

  #work(): void {
    while (this.#timer === null) {
      if (this.#lines.isCrowded) {
        this.#timer = setTimeout(() => {
          this.#timer = null
          this.#work()
        }, eventLimits.eventLinesRetryMs)
        this.#timer.unref()
        return
      }
      const batch = this.#reader.take(eventLimits.eventBatchBytes)
      if (batch === null) return
      this.#lines.write(escapeUnprintable(batch.lines))
    }
  }
}
