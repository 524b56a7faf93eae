import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/failure.ts'
import { formatUuid, newUuidv7 } from '../../lib/text/uuid.ts'
import { systemClock } from '../../lib/clock.ts'
import {
  anything,
  checkedAnswer,
  listShape,
  numberShape,
  objectShape,
  optionalShape,
  type Shape,
  textShape,
} from './answer-shape.ts'
import { Connections, type Peer } from './connections.ts'
import { ask, HttpsFault, type HttpsAnswer } from './https.ts'
import { ApiRefusal, refusalIn } from './refusal.ts'
import { type RenewedSession, sessionHeader } from './session-tokens.ts'

export const MANAGEMENT = '/edge/management/v1'

export const clientTimes = {
  requestMs: 15_000,
  /** Time from the first refusal of a cluster without leader to giving up. */
  patienceMs: 20_000,
  pauseMs: 250,
} as const

/** A page of a list, each of whose records may be as large as a request. */
export const clientLimits = { answerBytesMax: 64 * 1024 * 1024 } as const

export interface ApiClientOptions {
  /** Base URLs; the first is asked first. */
  readonly controllers: readonly string[]
  readonly caPem: string | null
  readonly token: string | null
  /** The session, in place of `token`, where its token is for a while. */
  readonly session?: RenewedSession | undefined
  readonly client?: Peer['client']
  /** Completes "…: " when the session is no more. */
  readonly logInAgain: string
  /**
   * Told when another controller than the first one answered, for the next command to begin there.
   */
  readonly onMoved?: (controller: string) => void
  /**
   * Takes controllers as they are: waits neither for a leader, nor for one that has applied less
   * than another that answered before.
   */
  readonly isImpatient?: boolean
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below `api`, which is the management API by default. */
  readonly path: string
  readonly api?: string
  readonly body?: unknown
  /** Sent as text/plain in place of `body`. */
  readonly text?: string
  readonly timeoutMs?: number
  readonly headers?: Readonly<Record<string, string>>
  /** A body that the server does not recognise when it is sent again, as one with a password. */
  readonly isOnceOnly?: boolean
}

export interface ShownDetachment {
  readonly entity: string
  readonly ids: readonly string[]
  readonly totalCount: number
}

export interface ApiAnswer<T = unknown> {
  readonly data: T
  readonly meta: {
    readonly ignoredFields?: readonly string[]
    /** Records that named what was deleted, and stay without it. */
    readonly detachedFrom?: readonly ShownDetachment[]
    readonly pagination?: { readonly totalCount: number }
  }
  readonly headers: HttpsAnswer['headers']
}

/** Refusals after which another controller, or the same one a moment later, may do it. */
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
  readonly #connections: Connections
  #at = 0
  /** Index of the last answer. */
  #index: string | null = null

  constructor(options: ApiClientOptions) {
    this.#options = options
    this.#connections = new Connections(options, clientTimes.requestMs, true)
  }

  /** The controller that answered last. */
  get controller(): string {
    return this.#options.controllers[this.#at] ?? ''
  }

  /**
   * @param shape of the data that the caller relies on.
   * @throws {CommandFailure} exit 1 with one sentence; {@link ApiRefusal} when a controller
   * answered.
   */
  async ask<T>(request: ApiRequest, shape: Shape<T>): Promise<ApiAnswer<T>>
  async ask(request: ApiRequest): Promise<ApiAnswer>
  async ask(request: ApiRequest, shape: Shape<unknown> = anything): Promise<ApiAnswer> {
    const answer = await this.#asked(request)
    // @guard answers-of-a-hostile-server--meta
    checkedAnswer(this.controller, metaShape, answer.meta)
    // @guard answers-of-a-hostile-server--records
    checkedAnswer(this.controller, shape, answer.data)
    return answer
  }

  async #asked(request: ApiRequest): Promise<ApiAnswer> {
    const requestId = formatUuid(newUuidv7(systemClock.nowMs()))
    const endMs =
      performance.now() + (this.#options.isImpatient === true ? 0 : clientTimes.patienceMs)
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
    const first = this.#at
    for (let count = 0; count < controllers.length; count += 1) {
      const at = (first + count) % controllers.length
      const controller = controllers[at] ?? ''
      try {
        const answer = await this.#askRenewed(controller, request, requestId)
        this.#moveTo(at)
        return { faults, refusal: null, answer }
      } catch (error) {
        if (error instanceof HttpsFault) {
          mustBeSafe(controller, request, error)
          faults.push(`${controller} ${error.message}`)
          continue
        }
        this.#at = at
        if (!(error instanceof ApiRefusal) || !isPassing(error, request)) throw error
        refusal = error
      }
    }
    return { faults, refusal, answer: null }
  }

  #moveTo(at: number): void {
    if (at === this.#at) return
    this.#at = at
    this.#options.onMoved?.(this.controller)
  }

  /** A token that ended on its way, or by the clock of the controller, is renewed once. */
  async #askRenewed(
    controller: string,
    request: ApiRequest,
    requestId: string,
  ): Promise<ApiAnswer> {
    const { session } = this.#options
    const token = (await session?.token()) ?? this.#options.token
    try {
      return await this.#askOne(controller, request, requestId, token)
    } catch (error) {
      const isOver = error instanceof ApiRefusal && error.code === 'NO_SESSION'
      if (!isOver || session === undefined || token === null) throw error
      const renewed = await session.renewed(token)
      if (renewed === null) throw error
      return await this.#askOne(controller, request, requestId, renewed)
    }
  }

  async #askOne(
    controller: string,
    request: ApiRequest,
    requestId: string,
    token: string | null,
  ): Promise<ApiAnswer> {
    const { method, path, api = MANAGEMENT, isOnceOnly = false } = request
    const { caPem, client, isImpatient = false } = this.#options
    const isRead = method === 'GET'
    const answer = await ask(
      {
        url: `${controller}${api}${path}`,
        method,
        headers: {
          ...(token === null ? {} : sessionHeader(token)),
          ...(this.#index === null || isImpatient ? {} : { 'net-min-index': this.#index }),
          ...(isRead || isOnceOnly ? {} : { 'net-request-id': requestId }),
          ...request.headers,
        },
        ...(isRead ? {} : { body: request.body, text: request.text }),
        caPem,
        client,
        connections: isOnceOnly ? undefined : this.#connections,
        timeoutMs: request.timeoutMs ?? clientTimes.requestMs,
      },
      clientLimits.answerBytesMax,
    )
    return this.#judged(answer)
  }

  #judged({ status, body, headers }: HttpsAnswer): ApiAnswer {
    const index = headers['net-index']
    if (typeof index === 'string') this.#index = index
    if (status >= 200 && status < 300) {
      const { data = null, meta } = (body ?? {}) as Partial<ApiAnswer>
      return { data, meta: meta ?? {}, headers }
    }
    const refusal = refusalIn(status, body)
    const isOfSession = refusal.code === 'UNAUTHORIZED' && status === 401
    // Only where another session would help does the server say which one.
    throw isOfSession && headers['www-authenticate'] !== undefined ? this.#noSession() : refusal
  }

  #noSession(): ApiRefusal {
    const sentence = `the session has expired or was ended; log in again: ${this.#options.logInAgain}`
    return new ApiRefusal(401, 'NO_SESSION', sentence)
  }
}

const metaShape = objectShape<ApiAnswer['meta']>({
  ignoredFields: optionalShape(listShape(textShape)),
  detachedFrom: optionalShape(
    listShape(
      objectShape<ShownDetachment>({
        entity: textShape,
        ids: listShape(textShape),
        totalCount: numberShape,
      }),
    ),
  ),
  pagination: optionalShape(objectShape({ totalCount: numberShape })),
})

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

/** The origin of a controller's address. @throws {CommandFailure} exit 2 for anything else. */
export function baseUrl(text: string, option = ''): string {
  const url = URL.parse(text)
  const isPlain = url?.username === '' && url.password === '' && url.search === ''
  if (isPlain && url.protocol === 'https:' && /^\/?$/.test(url.pathname)) return url.origin
  // HOST:PORT alone, or with another scheme, is what people type first.
  const address = text.replace(/^[a-z]+:\/\//i, '').replace(/\/$/, '')
  const isAddress = /^[\w.[\]:-]+:\d{1,5}$/.test(address)
  const hint = isAddress ? `; did you mean https://${address}?` : ''
  throw new CommandFailure(
    EXIT_USAGE,
    `${option}expected the address of a controller, https://HOST:PORT, found ${JSON.stringify(text)}${hint}`,
  )
}
