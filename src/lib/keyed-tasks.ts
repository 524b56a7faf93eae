interface KeyTasks {
  /** Under way. */
  running: number
  readonly waiting: (() => void)[]
}

/** Runs a few tasks of each key at once, the others in their order after them. */
export class KeyedTasks<K = string> {
  readonly #atOnceMax: number
  readonly #keys = new Map<K, KeyTasks>()

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax
  }

  /** Tasks of the key, under way or waiting. */
  count(key: K): number {
    const tasks = this.#keys.get(key)
    return tasks === undefined ? 0 : tasks.running + tasks.waiting.length
  }

  async run<T>(key: K, task: () => Promise<T>): Promise<T> {
    const tasks = this.#keys.get(key) ?? { running: 0, waiting: [] }
    this.#keys.set(key, tasks)
    // @guard writes-of-a-router--lane
    if (tasks.running < this.#atOnceMax) tasks.running += 1
    else await new Promise<void>((begin) => tasks.waiting.push(begin))
    try {
      return await task()
    } finally {
      // Its place goes to the next one, or is free.
      const next = tasks.waiting.shift()
      if (next !== undefined) next()
      else tasks.running -= 1
      if (tasks.running === 0) this.#keys.delete(key)
    }
  }
}
