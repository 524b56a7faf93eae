import type { Clock } from '../../lib/clock.ts'

/** Bytes that a chunk is taken to cost until it is here; set right then. */
const CHUNK_BYTES_ASSUMED = 256 * 1024
/** Timers are no finer: what is due so soon is given at once. */
const EARLY_MS = 1

/**
 * Shares one rate among transfers: each that can take a chunk stands in line and is given one in
 * its turn.
 */
export class TransferPacer<T> {
  readonly #bytesPerSecond: number
  readonly #clock: Clock
  readonly #give: (transfer: T) => void
  readonly #line: T[] = []
  #paidUntilMs = 0
  #timer: NodeJS.Timeout | null = null
  #isServing = false

  /** @param bytesPerSecond Infinity: everyone in line is given a chunk at once. */
  constructor(bytesPerSecond: number, clock: Clock, give: (transfer: T) => void) {
    this.#bytesPerSecond = bytesPerSecond
    this.#clock = clock
    this.#give = give
  }

  /** Stands in line for one chunk, once. Who was given one and can take more must say so again. */
  join(transfer: T): void {
    if (this.#line.includes(transfer)) return
    this.#line.push(transfer)
    this.#serve()
  }

  leave(transfer: T): void {
    const at = this.#line.indexOf(transfer)
    if (at >= 0) this.#line.splice(at, 1)
  }

  /** A chunk that was given has come and has so many bytes. */
  settle(bytes: number): void {
    if (bytes === CHUNK_BYTES_ASSUMED) return
    this.#pay(bytes - CHUNK_BYTES_ASSUMED)
    if (this.#timer === null) return
    clearTimeout(this.#timer)
    this.#timer = null
    this.#serve()
  }

  /** So many bytes go out that nobody stood in line for. */
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
    // A receiver that is served joins again from within; the loop below comes to it.
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
