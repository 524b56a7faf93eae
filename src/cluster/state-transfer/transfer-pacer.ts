import type { Clock } from '../../lib/clock.ts'

/** Size that a chunk is assumed to have until it arrives; `settle` then corrects the assumption. */
const CHUNK_BYTES_ASSUMED = 256 * 1024
/** Resolution of timers: a chunk that is due within this time is granted immediately. */
const EARLY_MS = 1

/**
 * Shares one rate among transfers: each transfer that can send a chunk waits in a queue until it
 * gets a grant for one chunk.
 */
export class TransferPacer<T> {
  readonly #bytesPerSecond: number
  readonly #clock: Clock
  readonly #give: (transfer: T) => void
  readonly #line: T[] = []
  #paidUntilMs = 0
  #timer: NodeJS.Timeout | null = null
  #isServing = false

  /** @param bytesPerSecond Infinity: every waiting transfer gets its grant immediately. */
  constructor(bytesPerSecond: number, clock: Clock, give: (transfer: T) => void) {
    this.#bytesPerSecond = bytesPerSecond
    this.#clock = clock
    this.#give = give
  }

  /**
   * Queues a transfer for one chunk; no effect if it is queued already. After each grant, the
   * transfer must join the queue again.
   */
  join(transfer: T): void {
    if (this.#line.includes(transfer)) return
    this.#line.push(transfer)
    this.#serve()
  }

  leave(transfer: T): void {
    const at = this.#line.indexOf(transfer)
    if (at >= 0) this.#line.splice(at, 1)
  }

  /** Corrects the assumed size of a granted chunk to `bytes`. */
  settle(bytes: number): void {
    if (bytes === CHUNK_BYTES_ASSUMED) return
    this.#pay(bytes - CHUNK_BYTES_ASSUMED)
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
    this.#serve()
  }

  /** Counts bytes that were sent without a grant. */
  pay(bytes: number): void {
    this.#paidUntilMs = Math.max(this.#paidUntilMs, this.#clock.monotonicMs())
    this.#pay(bytes)
  }

  stop(): void {
    this.#line.length = 0
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  #pay(bytes: number): void {
    this.#paidUntilMs += (bytes / this.#bytesPerSecond) * 1000
  }

  #serve(): void {
    // A transfer may join again during the loop, and the loop then also serves it.
    if (this.#isServing || this.#timer !== null) return
    this.#isServing = true
    for (let waitMs = this.#waitMs(); this.#line.length > 0; waitMs = this.#waitMs()) {
      if (waitMs > EARLY_MS) {
        this.#timer = setTimeout(() => {
          this.#timer = null
          this.#serve()
        }, waitMs)
        break
      }
      const [next] = this.#line.splice(0, 1)
      this.pay(CHUNK_BYTES_ASSUMED)
      if (next !== undefined) this.#give(next)
    }
    this.#isServing = false
  }

  #waitMs(): number {
    return this.#paidUntilMs - this.#clock.monotonicMs()
  }
}
