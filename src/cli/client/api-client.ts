import { Agent } from 'node:https'

import { CommandFailure, EXIT_FAILED } from '../../controller/failure.ts'
import { formatUuid, newUuidv7 } from '../../lib/text/uuid.ts'
import { systemClock } from '../../lib/clock.ts'
import { askJson, HttpsFault, type JsonAnswer } from './https.ts'
import { ApiRefusal, refusalIn } from './refusal.ts'

export const MANAGEMENT = '/edge/management/v1'

export const clientTimes = {
  requestMs: 15_000,
  /** From the first refusal of a cluster without leader to giving up. */
  patienceMs: 20_000,
  pauseMs: 250,
} as const

/** A page of a list, each of whose records may be as large as a request. */
export const clientLimits = { answerBytesMax: 64 * 1024 * 1024 } as const

export interface ApiClientOptions {
  readonly controllers: readonly string[]
  readonly caPem: string | null
  readonly token: string | null
  readonly client?: { readonly certificatePem: string; readonly privateKeyPem: string }
  /** Completes "…: " when the session is no more. */
  readonly logInAgain: string
  /**
   * Told when another controller than the first one answered, for the next command to begin there.
   */
  readonly onMoved?: (controller: string) => void
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the management API. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** A body that the server does not recognise when it is sent again, as one with a password. */
  readonly isOnceOnly?: boolean
}

export interface ShownDetachment {
  readonly entity: string
  readonly ids: readonly string[]
  readonly totalCount: number
}

export interface ApiAnswer {
  readonly data: unknown
  readonly meta: {
    readonly ignoredFields?: readonly string[]
    /** Of a deletion: what named the record, and stays without it. */
    readonly detachedFrom?: readonly ShownDetachment[]
    readonly pagination?: { readonly totalCount: number }
  }
  readonly headers: JsonAnswer['headers']
}

/** What another controller, or the same one a moment later, may do. */
const passing = new Set([
  'CLUSTER_NO_LEADER',
  'OUTCOME_UNKNOWN',
  'INDEX_NOT_REACHED',
  'SERVER_TOO_MANY_REQUESTS',
  'RATE_LIMITED',
])

/**
 * Asks any controller of a cluster: the next one when one is away, and again while there is no
 * leader. Each write has an id by which it takes effect once, however often it is sent; each read
 * reflects what this client has written.
 */
export class ApiClient {
  readonly #options: ApiClientOptions
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 })
  #at = 0
  /** Of the last answer. */
  #index: string | null = null

  constructor(options: ApiClientOptions) {
    this.#options = options
  }

  /** The controller that answered last. */
  get controller(): string {
    return this.#options.controllers[this.#at] ?? ''
  }

  /**
   * @throws {CommandFailure} exit 1 with one sentence; {@link ApiRefusal} when a controller
   * answered.
   */
  async ask(request: ApiRequest): Promise<ApiAnswer> {
    const requestId = formatUuid(newUuidv7(systemClock.nowMs()))
    const endMs = performance.now() + clientTimes.patienceMs
    for (;;) {
      const { faults, refusal, answer } = await this.#round(request, requestId)
      if (answer !== null) return answer
      if (refusal === null) throw unreachable(faults)
      if (performance.now() > endMs) throw refusal
      await new Promise((resolve) => setTimeout(resolve, clientTimes.pauseMs))
    }
  }

  /** Each controller once, beginning with the one that answered last. */
  async #round(request: ApiRequest, requestId: string): Promise<Round> {
    const { controllers } = this.#options
    const faults: string[] = []
    let refusal: ApiRefusal | null = null
    for (let count = 0; count < controllers.length; count += 1) {
      const at = (this.#at + count) % controllers.length
      const controller = controllers[at] ?? ''
      try {
        const answer = await this.#askOne(controller, request, requestId)
        this.#moveTo(at)
        return { faults, refusal: null, answer }
      } catch (error) {
        if (error instanceof HttpsFault) {
          mustBeSafe(controller, request, error)
          faults.push(`${controller} ${error.message}`)
        } else if (error instanceof ApiRefusal && isPassing(error, request)) refusal = error
        else throw error
      }
    }
    return { faults, refusal, answer: null }
  }

  #moveTo(at: number): void {
    if (at === this.#at) return
    this.#at = at
    this.#options.onMoved?.(this.controller)
  }

  async #askOne(controller: string, request: ApiRequest, requestId: string): Promise<ApiAnswer> {
    const { method, path, body, isOnceOnly = false } = request
    const { caPem, token, client } = this.#options
    const isRead = method === 'GET'
    const answer = await askJson({
      url: `${controller}${MANAGEMENT}${path}`,
      method,
      headers: {
        ...(token === null ? {} : { 'net-session': token }),
        ...(this.#index === null ? {} : { 'net-min-index': this.#index }),
        ...(isRead || isOnceOnly ? {} : { 'net-request-id': requestId }),
        ...request.headers,
      },
      body,
      ...(caPem === null ? {} : { caPem }),
      ...(client === undefined ? {} : { client }),
      ...(isOnceOnly ? {} : { agent: this.#agent }),
      answerBytesMax: clientLimits.answerBytesMax,
      timeoutMs: clientTimes.requestMs,
    })
    return this.#judged(answer)
  }

  #judged({ status, body, headers }: JsonAnswer): ApiAnswer {
    const index = headers['net-index']
    if (typeof index === 'string') this.#index = index
    if (status >= 200 && status < 300) {
      const { data = null, meta } = (body ?? {}) as Partial<ApiAnswer>
      return { data, meta: meta ?? {}, headers }
    }
    const refusal = refusalIn(status, body)
    if (status !== 401 || refusal.code !== 'UNAUTHORIZED') throw refusal
    // Only where another session would help does the server say which one.
    if (headers['www-authenticate'] !== undefined) throw this.#noSession()
    throw new ApiRefusal(
      status,
      refusal.code,
      'permission denied; ask an administrator for the permission',
    )
  }

  #noSession(): ApiRefusal {
    const sentence = `the session has expired or was ended; log in again: ${this.#options.logInAgain}`
    return new ApiRefusal(401, 'NO_SESSION', sentence)
  }
}

interface Round {
  readonly faults: readonly string[]
  readonly refusal: ApiRefusal | null
  readonly answer: ApiAnswer | null
}

function isPassing({ status, code }: ApiRefusal, { isOnceOnly }: ApiRequest): boolean {
  if (isOnceOnly === true && code === 'OUTCOME_UNKNOWN') return false
  return passing.has(code) || status === 502 || status === 503 || status === 504
}

/** Sent again, it could take effect twice. */
function mustBeSafe(controller: string, { isOnceOnly }: ApiRequest, fault: HttpsFault): void {
  if (isOnceOnly !== true || !fault.isSent) return
  throw new CommandFailure(
    EXIT_FAILED,
    `${controller}: it ${fault.message}; outcome unknown, check before repeating`,
    fault,
  )
}

function unreachable(faults: readonly string[]): CommandFailure {
  const [only] = faults
  if (faults.length === 1 && only !== undefined) {
    const space = only.indexOf(' ')
    return new CommandFailure(EXIT_FAILED, `${only.slice(0, space)}: it${only.slice(space)}`)
  }
  return new CommandFailure(EXIT_FAILED, `no controller is reachable: ${faults.join('; ')}`)
}
