import { randomBytes } from 'node:crypto'
import { type Client, pause } from '../process/support/client.ts'
import { SoakConnection, type SoakCounts } from './soak-connection.ts'

export interface SoakLoadOptions {
  readonly services: number
  /** Connections that write small bodies without pause. */
  readonly writers: number
  /**
   * Number of connections that all write a body of the maximum size at the same time, again and
   * again.
   */
  readonly burstWriters: number
  readonly burstPauseMs: number
}

/**
 * Number of services with bodies of the maximum size. They remain at the end, so their memory is
 * not caused by the writes in progress.
 */
const LARGE_SERVICES = 32
const BODY_BYTES_MAX = 1024 * 1024
/** Each time a steady writer has made this many writes, it sends a body of medium size. */
const MIDDLING_EVERY = 100
const MIDDLING_BYTES = 32 * 1024
const PATH = '/edge/management/v1/services'

interface Target {
  readonly id: string
  readonly name: string
  /** Number of the last acknowledged write; the stored value must not be older. */
  acknowledged: number
  /** Number of the last write that was sent; its outcome may be unknown. */
  sent: number
}

/** Clients that change a fixed set of services as fast as the controllers accept it. */
export class SoakLoad {
  readonly counts: SoakCounts = { written: 0, refused: 0, unknown: 0, broken: 0 }
  bursts = 0
  readonly #options: SoakLoadOptions
  readonly #access: { readonly ca: string; readonly token: string }
  readonly #targets: readonly Target[]
  readonly #filler = randomBytes(BODY_BYTES_MAX)
    .toString('base64')
    .slice(0, BODY_BYTES_MAX - 512)
  #isOver = false
  #running: Promise<unknown> = Promise.resolve()
  #failure: Error | null = null

  private constructor(
    options: SoakLoadOptions,
    access: { readonly ca: string; readonly token: string },
    targets: readonly Target[],
  ) {
    this.#options = options
    this.#access = access
    this.#targets = targets
  }

  /** Creates the services to which the load will write. */
  static async prepare(options: SoakLoadOptions, session: Client, ca: string): Promise<SoakLoad> {
    const targets: Target[] = []
    for (let at = 0; at < options.services; at += 1) {
      const name = `service-${at}`
      const body = { name, encryptionRequired: true, tags: { n: 0 } }
      const answer = await session.request('POST', PATH, { body })
      if (answer.status !== 201) throw new Error(`create: ${answer.status} ${answer.text}`)
      const { id } = answer.body.data as { id: string }
      targets.push({ id, name, acknowledged: 0, sent: 0 })
    }
    return new SoakLoad(options, { ca, token: session.token ?? '' }, targets)
  }

  /** Starts to write through these controllers. */
  start(urls: readonly string[]): void {
    const { writers } = this.#options
    const small = this.#targets.slice(LARGE_SERVICES)
    const steady = Array.from({ length: writers }, (_, writer) => {
      const own = small.filter((_target, at) => at % writers === writer)
      return this.#writeSteadily(this.#connect(urls, writer), own)
    })
    this.#running = Promise.all([...steady, this.#writeBursts(urls)]).catch((error: unknown) => {
      this.#failure ??= error instanceof Error ? error : new Error(String(error))
      this.#isOver = true
    })
  }

  /** @throws the error with which a writer has failed. */
  check(): void {
    if (this.#failure !== null) throw this.#failure
  }

  /** Ends the load. @throws the first failed write. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
    this.check()
  }

  /**
   * @returns the number of services whose value on this controller is older than the last
   * acknowledged one.
   */
  async lost(session: Client): Promise<number> {
    let lost = 0
    for (const { id, acknowledged, sent } of this.#targets) {
      const answer = await session.request('GET', `${PATH}/${id}`)
      const { tags } = answer.body.data as { tags: { n: number } }
      if (tags.n < acknowledged || tags.n > sent) lost += 1
    }
    return lost
  }

  #connect(urls: readonly string[], first: number): SoakConnection {
    return new SoakConnection(urls, first, this.#access, this.counts)
  }

  /**
   * Each service has one writer, so its last acknowledged value is the stored one. One write in
   * four has no request ID.
   */
  async #writeSteadily(connection: SoakConnection, own: readonly Target[]): Promise<void> {
    for (let turn = 0; !this.#isOver; turn += 1) {
      const target = own[turn % own.length]
      if (target === undefined) return
      target.sent += 1
      const { id, name, sent } = target
      const isMiddling = turn % MIDDLING_EVERY === MIDDLING_EVERY - 1
      const filler = isMiddling ? this.#filler.slice(0, MIDDLING_BYTES) : ''
      const tags = `"tags":{"n":${sent},"filler":"${filler}"}`
      const isPut = turn % 3 === 0
      const body = isPut ? `{"name":"${name}","encryptionRequired":true,${tags}}` : `{${tags}}`
      const method = isPut ? 'PUT' : 'PATCH'
      const isTold = await connection.write(method, `${PATH}/${id}`, body, turn % 4 !== 0)
      if (isTold) target.acknowledged = sent
    }
    connection.close()
  }

  /**
   * Many more writes than the limit of concurrent large bodies; several connections may write to
   * the same service.
   */
  async #writeBursts(urls: readonly string[]): Promise<void> {
    const targets = this.#targets.slice(0, LARGE_SERVICES)
    while (!this.#isOver) {
      const firsts = targets.map(({ sent }) => sent + 1)
      const writes = Array.from({ length: this.#options.burstWriters }, (_, at) =>
        this.#writeLarge(this.#connect(urls, at), targets[at % targets.length]),
      )
      await Promise.all(writes)
      for (const [at, target] of targets.entries()) {
        target.acknowledged = Math.min(firsts[at] ?? 0, target.sent)
      }
      this.bursts += 1
      const untilMs = performance.now() + this.#options.burstPauseMs
      while (!this.#isOver && performance.now() < untilMs) await pause(100)
    }
  }

  async #writeLarge(connection: SoakConnection, target: Target | undefined): Promise<void> {
    if (target === undefined) return
    target.sent += 1
    const body = `{"tags":{"n":${target.sent},"filler":"${this.#filler}"}}`
    await connection.write('PATCH', `${PATH}/${target.id}`, body, true)
    connection.close()
  }
}
