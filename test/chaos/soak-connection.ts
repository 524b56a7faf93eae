import { LeanClient } from '../../bench/support/lean-client.ts'
import { formatUuid, newUuidv7 } from '../../src/lib/text/uuid.ts'
import { pause } from '../process/support/client.ts'

export interface SoakCounts {
  written: number
  /** Number of requests that were refused temporarily, and sent again. */
  refused: number
  /** Number of writes without a request ID whose outcome is unknown. */
  unknown: number
  /** Number of connections that broke. */
  broken: number
}

/** Delay before a temporarily refused request is sent again. */
const AGAIN_MS = 50
/**
 * After this many refusals in a row, a write is sent without a request ID, because the controllers
 * may store no further IDs at the moment.
 */
const TRIES_WITH_ID_MAX = 1
/** Longer than the time that any response may take. */
const ANSWER_MS = 30_000

/**
 * A connection that writes as a careful client does: it repeats requests that were temporarily
 * refused or interrupted.
 */
export class SoakConnection {
  readonly #ca: string
  readonly #token: string
  readonly #counts: SoakCounts
  /** URLs of the controllers; after each failure, the next one is used. */
  readonly #urls: readonly string[]
  #turn: number
  #client: LeanClient | null = null

  constructor(
    urls: readonly string[],
    first: number,
    access: { readonly ca: string; readonly token: string },
    counts: SoakCounts,
  ) {
    this.#urls = urls
    this.#turn = first
    this.#ca = access.ca
    this.#token = access.token
    this.#counts = counts
  }

  close(): void {
    this.#client?.close()
    this.#client = null
  }

  /**
   * @returns whether the write was acknowledged; false if the outcome is unknown, which happens
   * only without a request ID.
   * @throws for a response after which no careful client retries.
   */
  async write(method: string, path: string, body: string, isGivenId: boolean): Promise<boolean> {
    let hasId = isGivenId
    const id = `net-request-id: ${formatUuid(newUuidv7(Date.now()))}\r\n`
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#send(method, path, body, hasId ? id : '')
      if (answer === null) {
        this.#counts.broken += 1
        if (hasId) continue
        this.#counts.unknown += 1
        return false
      }
      if (answer.status === 200) {
        this.#counts.written += 1
        return true
      }
      const code = (JSON.parse(answer.body) as { error?: { code?: string } }).error?.code ?? ''
      if (code === 'OUTCOME_UNKNOWN' && !hasId) {
        this.#counts.unknown += 1
        return false
      }
      const isPassing = ['OUTCOME_UNKNOWN', 'CLUSTER_NO_LEADER', 'SERVER_TOO_MANY_REQUESTS']
      if (!isPassing.includes(code)) {
        throw new Error(`${method} ${path}: ${answer.status} ${answer.body.slice(0, 500)}`)
      }
      this.#counts.refused += 1
      // The cluster stores no further request IDs. A definite refusal means that the write did not
      // happen, so it may be sent without an ID.
      if (code !== 'SERVER_TOO_MANY_REQUESTS') tries = 0
      if (tries >= TRIES_WITH_ID_MAX) hasId = false
      await pause(AGAIN_MS)
    }
  }

  /** @returns null when the connection broke. */
  async #send(
    method: string,
    path: string,
    body: string,
    header: string,
  ): Promise<{ readonly status: number; readonly body: string } | null> {
    const timer = setTimeout(() => this.close(), ANSWER_MS)
    try {
      const url = this.#urls[this.#turn % this.#urls.length] ?? ''
      // A connection that was closed after its last response has lost nothing.
      if (this.#client?.isOpen !== true) this.#client = await LeanClient.connect(url, this.#ca)
      return await this.#client.request(method, path, this.#token, body, header)
    } catch {
      this.close()
      this.#turn += 1
      await pause(AGAIN_MS)
      return null
    } finally {
      clearTimeout(timer)
    }
  }
}
