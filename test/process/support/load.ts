import { allServices, type Client, createService, pause, until, type WriteFate } from './client.ts'

/**
 * Pause between two writes of a client, so that a joining member can catch up on a machine with one
 * core.
 */
const THINK_MS = 40

/**
 * Clients that write with short pauses and retry as a careful client does: they repeat a request
 * with its request ID after an answer that allows this or a broken connection. Any other refusal is
 * a failed request, and ends the load.
 */
export class Load {
  /** Target of the writes; may be changed at any time. */
  readonly clients: Client[]
  readonly fates: Map<string, WriteFate>
  readonly #prefix: string
  readonly #writers: Promise<unknown>
  #failure: Error | null = null
  #isOver = false

  /** @param before a finished load: its writes are also expected, but not repeated. */
  constructor(clients: readonly Client[], writers = 4, before: Load | null = null) {
    this.clients = [...clients]
    this.fates = new Map(before?.fates)
    this.#prefix = `w${this.fates.size === 0 ? '' : this.fates.size}`
    const each = Array.from({ length: writers }, (_, worker) => this.#write(worker))
    this.#writers = Promise.all(each).catch((error: unknown) => {
      this.#failure ??= error instanceof Error ? error : new Error(String(error))
      this.#isOver = true
    })
  }

  /**
   * A finished load that represents all current records of a controller, so that another load can
   * follow it.
   */
  static async written(reader: Client): Promise<Load> {
    const load = new Load([], 0)
    for (const name of (await allServices(reader)).values()) load.fates.set(name, 'acknowledged')
    return load
  }

  async #write(worker: number): Promise<void> {
    for (let n = 0; !this.#isOver; n += 1) {
      const name = `${this.#prefix}-${worker}-${n}`
      const fate = await createService(this.clients, worker + n, name, { hasRequestId: true })
      this.fates.set(name, fate)
      await pause(THINK_MS)
    }
  }

  /** Resolves once this number of further writes is acknowledged. @throws the error of a writer. */
  async more(count: number): Promise<void> {
    const goal = this.fates.size + count
    await until(`${count} more writes`, () => {
      if (this.#failure !== null) return Promise.resolve(true)
      return Promise.resolve(this.fates.size >= goal)
    })
    this.#throwFailure()
  }

  /** Ends the load. @throws the first failed request. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#writers
    this.#throwFailure()
  }

  /**
   * @throws unless this controller has every acknowledged write exactly once, and no other write.
   */
  async expectAll(client: Client): Promise<void> {
    const names = [...(await allServices(client)).values()]
    const there = new Set(names)
    const lost = [...this.fates].filter(
      ([name, fate]) => fate === 'acknowledged' && !there.has(name),
    )
    const twice = names.length - there.size
    const foreign = names.filter((name) => !this.fates.has(name))
    if (lost.length + twice + foreign.length > 0) {
      throw new Error(`${lost.length} lost, ${twice} twice, ${foreign.length} nobody asked for`)
    }
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw this.#failure
  }
}
