interface KeyTasks {
  /** Number of running tasks. */
  running: number
  readonly waiting: (() => void)[]
}

/** Limits how many tasks of a key run at the same time; further tasks of the key wait in order. */
export class KeyedTasks<K = string> {
  readonly #atOnceMax: number
  readonly #keys = new Map<K, KeyTasks>()

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax
  }

  /** Number of running and waiting tasks of the key. */
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
      // The next waiting task gets the slot; if no task waits, the slot becomes free.
      const next = tasks.waiting.shift()
      if (next !== undefined) next()
      else tasks.running -= 1
      if (tasks.running === 0) this.#keys.delete(key)
    }
  }
}
