import type { Random } from '../../src/lib/random.ts'
import type { NodeId } from '../../src/raft/types.ts'
import type { Rates } from './plan.ts'
import type { Tally } from './tally.ts'

/**
 * The network between controllers: which direction of each pair works, and its delay. One direction
 * may be cut alone.
 */
export class Network {
  readonly #chance: Random
  readonly #rates: Rates
  readonly #tally: Tally
  /** "from>to" pairs that are cut. */
  readonly #cut = new Set<string>()
  /** "from>to" → extra delay, ms. */
  readonly #slow = new Map<string, number>()
  /** "from>to" → arrival of the latest message, virtual ms, in runs with retransmission. */
  readonly #arrivals = new Map<string, number>()
  readonly #nowMs: () => number
  isHealed = false

  constructor(chance: Random, rates: Rates, tally: Tally, nowMs: () => number) {
    this.#nowMs = nowMs
    this.#chance = chance
    this.#rates = rates
    this.#tally = tally
  }

  isCut(from: NodeId, to: NodeId): boolean {
    return this.#cut.has(`${from}>${to}`)
  }

  cut(from: NodeId, to: NodeId): void {
    this.#cut.add(`${from}>${to}`)
  }

  slow(from: NodeId, to: NodeId, extraMs: number): void {
    this.#slow.set(`${from}>${to}`, extraMs)
  }

  mend(): void {
    this.#cut.clear()
    this.#slow.clear()
  }

  /** One-way delay, ms. */
  delayMs(from: NodeId, to: NodeId): number {
    const extraMs = this.#slow.get(`${from}>${to}`) ?? 0
    const { delayMsMin = 0, delayMsMax } = this.#rates
    return this.#chance.integer(delayMsMin, delayMsMax) + (extraMs * (1 + this.#chance.next())) / 2
  }

  /** Delays, ms, of the delivered copies of a Raft message; empty when it is lost. */
  copiesOf(from: NodeId, to: NodeId): readonly number[] {
    if (this.isHealed) return [this.delayMs(from, to)]
    const { lossChance, repeatChance, lateChance, resendMs } = this.#rates
    if (resendMs !== undefined) return [this.#inOrderMs(from, to, resendMs)]
    if (this.#happens(lossChance)) {
      this.#tally.note('message lost')
      return []
    }
    const delays = [this.#mayBeLate(from, to, lateChance)]
    if (this.#happens(repeatChance)) {
      this.#tally.note('message repeated')
      delays.push(this.#mayBeLate(from, to, lateChance))
    }
    return delays
  }

  /** Delay of a message in a stream that repairs losses and keeps the order, ms. */
  #inOrderMs(from: NodeId, to: NodeId, resendMs: number): number {
    let delayMs = this.delayMs(from, to)
    for (let waitMs = resendMs; this.#happens(this.#rates.lossChance); waitMs *= 2) {
      this.#tally.note('message lost')
      delayMs += waitMs
    }
    const pair = `${from}>${to}`
    const nowMs = this.#nowMs()
    const arrivalMs = Math.max(nowMs + delayMs, this.#arrivals.get(pair) ?? 0)
    this.#arrivals.set(pair, arrivalMs)
    return arrivalMs - nowMs
  }

  /** Whether a stream breaks before the next frame. */
  isReset(): boolean {
    return !this.isHealed && this.#happens(this.#rates.resetChance)
  }

  #mayBeLate(from: NodeId, to: NodeId, lateChance: number): number {
    if (!this.#happens(lateChance)) return this.delayMs(from, to)
    this.#tally.note('message reordered')
    return this.delayMs(from, to) + this.#chance.integer(20, 1_500)
  }

  #happens(chance: number): boolean {
    return chance > 0 && this.#chance.next() < chance
  }
}
