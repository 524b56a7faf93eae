interface Lane {
  /** Under way. */
  running: number
  readonly waiting: (() => void)[]
}

/** Runs a few tasks of each key at once, the others in their order after them. */
export class Lanes {
  readonly #atOnceMax: number
  readonly #lanes = new Map<string, Lane>()

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax
  }

  /** Of the key, under way or waiting. */
  count(key: string): number {
    const lane = this.#lanes.get(key)
    return lane === undefined ? 0 : lane.running + lane.waiting.length
  }

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const lane = this.#lanes.get(key) ?? { running: 0, waiting: [] }
    this.#lanes.set(key, lane)
    if (lane.running < this.#atOnceMax) lane.running += 1
    else await new Promise<void>((begin) => lane.waiting.push(begin))
    try {
      return await task()
    } finally {
      // Its place goes to the next one, or is free.
      const next = lane.waiting.shift()
      if (next !== undefined) next()
      else lane.running -= 1
      if (lane.running === 0) this.#lanes.delete(key)
    }
  }
}
