import type { EventFilter } from '../../ports/events.ts'
import type { EventBus } from '../event-bus.ts'
import { eventLimits } from '../limits.ts'
import { EventFile, type EventFileOptions } from './event-file.ts'
import { missingEventsLine, SinkReader, endOfStreamLine } from './sink-reader.ts'
import { errorMessage } from '../../lib/error-code.ts'

interface FileSinkDeps {
  readonly bus: EventBus
  readonly filter: EventFilter
  readonly options: EventFileOptions
  /**
   * Called with the reason when the file cannot be written, and with null when writing succeeds
   * again.
   */
  readonly onFault: (reason: string | null) => void
}

/**
 * Writes events to a file. After a failure, for example because the disk is full, the sink retries
 * until a write succeeds, without blocking other code. Events that are evicted from the ring
 * meanwhile are counted, and a line in the file marks the gap.
 */
export class FileSink {
  readonly #deps: FileSinkDeps
  #file: EventFile | null = null
  #reader: SinkReader | null = null
  /** Lines that were taken from the ring but not written yet. */
  #left: Buffer = Buffer.alloc(0)
  #written = 0
  #hasFault = false
  #isStopping = false
  #working: Promise<void> | null = null
  #timer: NodeJS.Timeout | null = null
  #unlisten: () => void = () => undefined

  constructor(deps: FileSinkDeps) {
    this.#deps = deps
  }

  /**
   * Number of events, in all namespaces, that were evicted from the ring before they could be
   * written.
   */
  get lost(): number {
    return this.#reader?.lost ?? 0
  }

  get written(): number {
    return this.#written
  }

  /**
   * Opens the file and starts writing. If the file cannot be opened, opening is retried like a
   * write.
   */
  start(): void {
    this.#unlisten = this.#deps.bus.onEvents(() => this.#work())
    this.#work()
  }

  /** Writes the remaining events until a write fails; a failed write is not retried. */
  async stop(): Promise<void> {
    this.#unlisten()
    this.#work()
    this.#isStopping = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#working
    if (!this.#hasFault) await this.#writeEnd().catch(() => undefined)
    this.#reader?.close()
    this.#file?.close()
  }

  /**
   * Writes the last line of this process, from which the next process learns that no event is
   * missing between the two processes.
   */
  async #writeEnd(): Promise<void> {
    const { bus } = this.#deps
    await this.#file?.write(Buffer.from(`${endOfStreamLine(bus.selfId, bus.nextPosition())}\n`))
  }

  #work(): void {
    if (this.#working !== null || this.#timer !== null || this.#isStopping) return
    this.#working = this.#writeAll()
      .then(
        () => this.#report(null),
        (error: unknown) => this.#retryLater(error),
      )
      .finally(() => {
        this.#working = null
      })
  }

  async #writeAll(): Promise<void> {
    const file = (this.#file ??= new EventFile(this.#deps.options))
    const reader = this.#reader ?? (await this.#begin(file))
    for (;;) {
      if (this.#left.length === 0) {
        const batch = reader.take(eventLimits.eventFileBatchBytes)
        if (batch === null) return
        this.#left = Buffer.from(batch.lines, 'utf8')
        this.#written += batch.events
      }
      while (this.#left.length > 0) {
        this.#left = this.#left.subarray(await file.write(this.#left))
      }
    }
  }

  /**
   * Continues after the last event that an earlier process wrote. Events that the earlier process
   * did not write are lost if this process does not apply their log entries again; a line then
   * marks the gap.
   */
  async #begin(file: EventFile): Promise<SinkReader> {
    const { bus, filter } = this.#deps
    const last = await file.lastPosition()
    this.#reader = new SinkReader(bus, filter, last)
    const { floor } = bus.ring
    const isBehind =
      last !== null && (last.generation !== floor.generation || last.index < floor.index)
    if (isBehind)
      this.#left = Buffer.from(`${missingEventsLine(bus.selfId, { from: last, to: floor })}\n`)
    return this.#reader
  }

  #retryLater(error: unknown): void {
    this.#report(errorMessage(error))
    if (this.#isStopping) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#work()
    }, eventLimits.eventFileRetryMs)
    this.#timer.unref()
  }

  #report(fault: string | null): void {
    const hasFault = fault !== null
    if (hasFault === this.#hasFault) return
    this.#hasFault = hasFault
    this.#deps.onFault(fault)
  }
}
