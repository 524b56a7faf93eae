import type { Random } from '../../../src/lib/random.ts'
import type { Tally } from '../tally.ts'

/** Fault rates of circuit frames on links; chances are per frame. */
export interface FrameRates {
  readonly lossChance: number
  readonly repeatChance: number
  readonly lateChance: number
}

const LATE_MS_MAX = 400

/** Draws the faults of circuit frames on links, until the faults are over. */
export class Frames {
  isHealed = false
  readonly #chance: Random
  readonly #rates: FrameRates
  readonly #tally: Tally

  constructor(chance: Random, rates: FrameRates, tally: Tally) {
    this.#chance = chance
    this.#rates = rates
    this.#tally = tally
  }

  /**
   * Delays, ms, of the delivered copies of a frame: empty when it is lost, 0 for immediate
   * delivery.
   */
  delaysOf(): readonly number[] {
    if (this.isHealed) return AT_ONCE
    const { lossChance, repeatChance, lateChance } = this.#rates
    const drawn = this.#chance.next()
    if (drawn < lossChance) {
      this.#tally.note('frame lost')
      return []
    }
    if (drawn < lossChance + repeatChance) {
      this.#tally.note('frame repeated')
      return [0, this.#chance.integer(1, LATE_MS_MAX)]
    }
    if (drawn < lossChance + repeatChance + lateChance) {
      this.#tally.note('frame late')
      return [this.#chance.integer(1, LATE_MS_MAX)]
    }
    return AT_ONCE
  }
}

const AT_ONCE: readonly number[] = [0]
