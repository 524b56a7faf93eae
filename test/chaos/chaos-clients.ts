import { type Client, createService, pause, type WriteFate } from '../process/support/client.ts'
import type { Fleet } from '../process/support/fleet.ts'

const PAUSED_MS = 20

/**
 * Clients that write to the available controllers all the time. A third of them send no request ID,
 * and so may not learn whether a write took effect.
 */
export class ChaosClients {
  /**
   * One client for each member. The list is changed in place, so that every user of it sees the
   * change.
   */
  readonly pool: Client[] = []
  readonly fates = new Map<string, WriteFate>()
  readonly #fleet: Fleet
  readonly #byNumber = new Map<number, Client>()
  #writers: Promise<unknown> = Promise.resolve()
  #failure: Error | null = null
  #isOver = false
  #isPaused = false
  #busy = 0

  constructor(fleet: Fleet) {
    this.#fleet = fleet
  }

  start(writers: number): void {
    const all = Array.from({ length: writers }, (_, worker) => this.#write(worker))
    this.#writers = Promise.all(all).catch((error: unknown) => {
      this.#failure ??= error instanceof Error ? error : new Error(String(error))
      this.#isOver = true
    })
  }

  async add(k: number): Promise<void> {
    const client = await this.#fleet.loggedIn(k)
    this.#byNumber.set(k, client)
    this.pool.push(client)
  }

  /**
   * Called before a controller is removed, because its responses afterwards do not reflect the
   * cluster.
   */
  remove(k: number): void {
    const client = this.#byNumber.get(k)
    const at = client === undefined ? -1 : this.pool.indexOf(client)
    if (at >= 0) this.pool.splice(at, 1)
    this.#byNumber.delete(k)
  }

  /** Called after a restore, which ends all sessions. */
  async logInAgain(): Promise<void> {
    await Promise.all(this.pool.map((client) => this.#fleet.logIn(client)))
  }

  of(k: number): Client {
    const client = this.#byNumber.get(k)
    if (client === undefined) throw new Error(`no client of ctrl${k}`)
    return client
  }

  /** Resolves when no write is in progress; none starts until `resume`. */
  async pause(): Promise<void> {
    this.#isPaused = true
    while (this.#busy > 0) await pause(PAUSED_MS)
  }

  resume(): void {
    this.#isPaused = false
  }

  /** @throws if a client received an answer that no client should receive. */
  throwFailure(): void {
    if (this.#failure !== null) throw this.#failure
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#writers
    this.throwFailure()
  }

  async #write(worker: number): Promise<void> {
    for (let n = 0; !this.#isOver; n += 1) {
      while (this.#isPaused) await pause(PAUSED_MS)
      const name = `w-${worker}-${n}`
      this.#busy += 1
      const fate = await createService(this.pool, worker + n, name, {
        hasRequestId: worker % 3 !== 0,
        // Long, because a membership change during faults takes longer than the recovery from a
        // kill.
        deadlineMs: 180_000,
      }).finally(() => (this.#busy -= 1))
      this.fates.set(name, fate)
    }
  }
}
