import { randomBytes } from 'node:crypto'

import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'
import {
  ClusterClient,
  type ClusterResponse,
  type ClusterRequest,
  type SessionTokenSource,
  MANAGEMENT_API_PATH,
  type MemberTarget,
} from '../../client/cluster-client.ts'
import { MemberOrder } from '../../client/member-order.ts'
import {
  ApiRefusalError,
  OutcomeUnknownError,
  UnreachableError,
} from '../../client/client-errors.ts'
import { newRequestId } from '../../client/request-id.ts'
import { commandTimeouts } from '../../client/timeouts.ts'
import { systemClock } from '../../lib/clock.ts'
import {
  unknownShape,
  validateResponse,
  listShape,
  numberShape,
  objectShape,
  optionalShape,
  type ShapeCheck,
  textShape,
} from './response-shape.ts'
import { VerifyingHttpsAgent, type HttpsServerTarget } from './verifying-https-agent.ts'
import { sendHttpsRequest } from './https-request.ts'
import { ApiRefusal, toApiRefusal } from './api-refusal.ts'
import type { RenewedSession } from './session-tokens.ts'

export const clientResponseLimits = {
  /**
   * Maximum bytes of one response. High, because a list page may contain records that are each as
   * large as a request may be.
   */
  answerBytesMax: 64 * 1024 * 1024,
} as const

export interface ApiClientOptions {
  /** Base URLs of the controllers, in the order in which they are tried. */
  readonly controllers: readonly string[]
  readonly caPem: string | null
  readonly token: string | null | (() => string | null)
  /** A session whose token expires and is renewed; if set, `token` is ignored. */
  readonly session?: RenewedSession | undefined
  readonly client?: HttpsServerTarget['client']
  readonly names?: HttpsServerTarget['names']
  /**
   * How to log in again, usually a command; it follows the colon in the message for a session that
   * has ended.
   */
  readonly logInAgain: string
  /**
   * Called when a request that names no controller succeeds at another controller than the one that
   * the client prefers.
   */
  readonly onMoved?: (controller: string) => void
  /**
   * True: the client does not wait for a leader, and accepts a response from a controller that has
   * applied less of the log than the controller of an earlier response.
   */
  readonly isImpatient?: boolean
}

export interface ApiRequest extends ClusterRequest {
  readonly method: NonNullable<ClusterRequest['method']>
  /** Path below the base path of `api`, which is the management API by default. */
  readonly path: string
  readonly api?: string
  readonly body?: unknown
  /** True: the whole response body is data; there is no envelope. */
  readonly isBare?: boolean
  /** Body that is sent as text/plain; set instead of `body`. */
  readonly text?: string
}

interface ShownDetachment {
  readonly entity: string
  readonly ids: readonly string[]
  readonly totalCount: number
}

export interface ApiResponse<T = unknown> {
  readonly data: T
  readonly meta: {
    readonly ignoredFields?: readonly string[]
    readonly warnings?: readonly string[]
    /** Records that referenced the deleted record before the deletion. */
    readonly detachedFrom?: readonly ShownDetachment[]
    readonly pagination?: { readonly totalCount: number }
  }
  readonly header: ClusterResponse['header']
}

/**
 * API client of commands and of the host tunnel: it uses HTTPS, and reports errors as sentences for
 * the user.
 */
export class ApiClient {
  readonly #options: ApiClientOptions
  readonly #connections: VerifyingHttpsAgent
  readonly #members: MemberOrder
  readonly #core: ClusterClient<ApiRequest>
  #controller: string

  constructor(options: ApiClientOptions) {
    const { controllers, isImpatient = false } = options
    this.#options = options
    this.#connections = new VerifyingHttpsAgent(options, commandTimeouts.answerMs, true)
    this.#members = new MemberOrder(controllers, systemClock)
    this.#controller = this.#members.current
    this.#core = new ClusterClient({
      members: this.#members,
      session: clientSession(options),
      send: (request, to) => this.#send(request, to),
      waits: isImpatient ? { ...commandTimeouts, patienceMs: 0 } : commandTimeouts,
      clock: systemClock,
      requestId: newCommandRequestId,
      readsOwnWrites: !isImpatient,
    })
  }

  /** The controller that last served or refused a request; until one has, the first one. */
  get controller(): string {
    return this.#controller
  }

  /** Base URLs of all known controllers. */
  get controllers(): readonly string[] {
    return this.#members.order()
  }

  /** Replaces the list of controllers; the controller in use stays first. */
  follow(controllers: readonly string[]): void {
    this.#members.follow(controllers)
  }

  /**
   * @param shape shape of the data that the caller needs.
   * @throws {CommandFailure} with one sentence; {@link ApiRefusal} when a controller refused the
   * request.
   */
  async ask<T>(request: ApiRequest, shape: ShapeCheck<T>): Promise<ApiResponse<T>>
  async ask(request: ApiRequest): Promise<ApiResponse>
  async ask(request: ApiRequest, shape: ShapeCheck<unknown> = unknownShape): Promise<ApiResponse> {
    const { current } = this.#members
    const { body, header, origin } = await this.#core.ask(request).catch((error: unknown) => {
      throw this.#failureOf(error)
    })
    this.#controller = origin
    if (origin !== current && request.origin === undefined) this.#options.onMoved?.(origin)
    const whole = request.isBare === true ? { data: body } : (body ?? {})
    const { data = null, meta = {} } = whole as Partial<ApiResponse>
    // @guard answers-of-a-hostile-server--meta
    validateResponse(origin, metaShape, meta)
    // @guard answers-of-a-hostile-server--records
    validateResponse(origin, shape, data)
    return { data, meta, header }
  }

  async #send(request: ApiRequest, { origin, ...to }: MemberTarget): Promise<ClusterResponse> {
    const { method, path, api = MANAGEMENT_API_PATH, body, text, isOnceOnly = false } = request
    const { caPem, client } = this.#options
    const { headers, ...answer } = await sendHttpsRequest(
      {
        ...to,
        url: `${origin}${api}${path}`,
        method,
        ...(method === 'GET' ? {} : { body, text }),
        caPem,
        client,
        // A request that must be sent only once uses a new connection. The controller might just
        // have closed a reused connection; the outcome would then be unknown.
        connections: isOnceOnly ? undefined : this.#connections,
      },
      clientResponseLimits.answerBytesMax,
    )
    return {
      status: answer.status,
      body: answer.body,
      header: (name) => [headers[name] ?? null].flat()[0] ?? null,
    }
  }

  #failureOf(error: unknown): unknown {
    if (error instanceof UnreachableError) return unreachable(error)
    if (error instanceof OutcomeUnknownError) {
      const { origin, reason } = error.fault
      const sentence = `${origin}: it ${reason}; outcome unknown, check before repeating`
      return new CommandFailure(EXIT_FAILED, sentence, error)
    }
    if (!(error instanceof ApiRefusalError)) return error
    this.#controller = error.origin
    if (!isSessionOver(error)) return toApiRefusal(error)
    const sentence = `the session has expired or was ended; log in again: ${this.#options.logInAgain}`
    return new ApiRefusal(401, 'NO_SESSION', sentence)
  }
}

/** @param laterMs how far ahead of the clock the time in the ID is. */
export function newCommandRequestId(laterMs: number): string {
  return newRequestId(systemClock.nowMs() + laterMs, randomBytes(16))
}

function clientSession({ token, session }: ApiClientOptions): SessionTokenSource {
  if (session === undefined) {
    return {
      token: () => (typeof token === 'function' ? token() : token),
      renewed: () => Promise.resolve(null),
    }
  }
  return {
    token: () => session.token(),
    renewed: async (refused, problem) =>
      refused !== null && isSessionOver(problem) ? await session.renewed(refused) : null,
  }
}

/**
 * Whether the controller does not accept the session, usually because it has ended. Unlike a
 * refusal for lack of a permission, such a response has a `www-authenticate` challenge.
 */
function isSessionOver({ status, code, hasChallenge }: ApiRefusalError): boolean {
  return status === 401 && code === 'UNAUTHORIZED' && hasChallenge
}

const metaShape = objectShape<ApiResponse['meta']>({
  ignoredFields: optionalShape(listShape(textShape)),
  warnings: optionalShape(listShape(textShape)),
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

function unreachable(error: UnreachableError): CommandFailure {
  const { faults } = error
  const [only] = faults
  if (faults.length === 1 && only !== undefined) {
    return new CommandFailure(EXIT_FAILED, `${only.origin}: it ${only.reason}`, error)
  }
  const each = faults.map(({ origin, reason }) => `${origin} ${reason}`)
  return new CommandFailure(EXIT_FAILED, `no controller is reachable: ${each.join('; ')}`, error)
}

/**
 * The origin of a controller's address.
 * @throws {CommandFailure} exit 2 unless the address is an https URL that has no path, query, user
 * name or password.
 */
export function parseControllerOrigin(text: string, option = ''): string {
  const url = URL.parse(text)
  const isPlain = url?.username === '' && url.password === '' && url.search === ''
  if (isPlain && url.protocol === 'https:' && /^\/?$/.test(url.pathname)) return url.origin
  // Removes any scheme, because users often type HOST:PORT without a scheme, or with another
  // scheme.
  const address = text.replace(/^[a-z]+:\/\//i, '').replace(/\/$/, '')
  const isAddress = /^[\w.[\]:-]+:\d{1,5}$/.test(address)
  const hint = isAddress ? `; did you mean https://${address}?` : ''
  throw new CommandFailure(
    EXIT_USAGE,
    `${option}expected the address of a controller, https://HOST:PORT, found ${JSON.stringify(text)}${hint}`,
  )
}
