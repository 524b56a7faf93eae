import type { Clock } from '../lib/clock.ts'
import type { MemberOrder } from './member-order.ts'
import { isEarlierGeneration, laterLogPosition } from './log-position.ts'
import {
  ApiRefusalError,
  type MemberFault,
  NoResponseError,
  OutcomeUnknownError,
  UnreachableError,
} from './client-errors.ts'
import { REQUEST_ID_OFFSET_AFTER_RESET_MS } from './request-id.ts'
import type { ClientTimeouts } from './timeouts.ts'

export const MANAGEMENT_API_PATH = '/edge/management/v1'
export const FABRIC_API_PATH = '/fabric/v1'

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The properties of a request that decide which member receives it, and how often it is sent. */
export interface ClusterRequest {
  readonly method?: HttpMethod
  readonly headers?: Readonly<Record<string, string>>
  /** Timeout for the response, instead of the default. */
  readonly timeoutMs?: number
  /**
   * True if controllers do not recognize a repeated request of this kind, so the client must not
   * send it twice.
   */
  readonly isOnceOnly?: boolean
  /** True if the request only reads, although it has a body. */
  readonly changesNothing?: boolean
  /**
   * The only member to which the request may be sent, for data that each member has about itself.
   */
  readonly origin?: string
  /** False if the request is sent without the session token. */
  readonly showsSession?: boolean
  /** False if the client reports a refused session instead of renewing it. */
  readonly renewsSession?: boolean
}

export interface ClusterResponse {
  readonly status: number
  readonly body: unknown
  header(name: string): string | null
}

/** The member to which the request is sent, with headers and timeout. */
export interface MemberTarget {
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/**
 * Sends a request to one member.
 * @throws {NoResponseError}
 */
type Send<R extends ClusterRequest> = (request: R, to: MemberTarget) => Promise<ClusterResponse>

/** Source of the session token for requests. */
export interface SessionTokenSource {
  /** The current token; null if there is no session. */
  token(): string | null | Promise<string | null>
  /**
   * Called after a 401 response.
   * @returns the token for one more attempt; null if there is no other token.
   */
  renewed(refused: string | null, problem: ApiRefusalError): Promise<string | null>
}

interface ClusterClientOptions<R extends ClusterRequest> {
  readonly members: MemberOrder
  readonly session: SessionTokenSource
  readonly send: Send<R>
  readonly waits: ClientTimeouts
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Returns a new ID for a write; the time in it is `laterMs` ahead of the clock. */
  readonly requestId: (laterMs: number) => string
  /** True if a response must reflect everything that earlier responses reflected. */
  readonly readsOwnWrites: boolean
}

/**
 * Time during which a write is retried with a later ID. For the first two seconds after a reset of
 * log time, even IDs with a later time are refused; the retries last a little longer.
 */
const LATER_PATIENCE_MS = 10_000

/**
 * Codes of temporary refusals: another member, or the same member later, may accept the request.
 */
const passingCodes: ReadonlySet<string> = new Set([
  'CLUSTER_NO_LEADER',
  'OUTCOME_UNKNOWN',
  'INDEX_NOT_REACHED',
  'SERVER_TOO_MANY_REQUESTS',
  'RATE_LIMITED',
])

/**
 * The header that contains a session's token. OIDC access tokens, which are JWTs, use another
 * header.
 */
export function sessionHeader(token: string): Readonly<Record<string, string>> {
  return token.startsWith('ey') ? { authorization: `Bearer ${token}` } : { 'net-session': token }
}

/**
 * Sends requests to the members of a cluster: to one member as long as it responds, then to the
 * next. A write has a request ID, so a retry cannot execute the write twice; a write with
 * `isOnceOnly` has none, and is sent again only if certainly no member has executed it. Only this
 * class decides about retries, timeouts, `net-min-index` and the renewal of a session.
 */
export class ClusterClient<R extends ClusterRequest> {
  readonly #options: ClusterClientOptions<R>
  #position: string | null = null

  constructor(options: ClusterClientOptions<R>) {
    this.#options = options
  }

  /**
   * The latest log position that any response reflected; null until a response contains a position.
   */
  get position(): string | null {
    return this.#position
  }

  /**
   * @throws {ApiRefusalError} when a controller refuses.
   * @throws {UnreachableError} when no member responds.
   * @throws {OutcomeUnknownError} when a write that must not be sent twice was sent and gets no
   * response.
   */
  async ask(request: R): Promise<ClusterResponse & { readonly origin: string }> {
    const { requestId } = this.#options
    const isKept = isWrite(request) && request.isOnceOnly !== true
    if (!isKept) return await this.#askUntil(request, { id: null, isOpen: false })
    const write: KeptWrite = { id: requestId(0), isOpen: false }
    try {
      return await this.#askUntil(request, write)
    } catch (error) {
      if (!isRefusedNew(error, write)) throw error
    }
    return await this.#askLater(request)
  }

  /**
   * Repeats a write that a controller refused as too old because log time was reset: with a later
   * ID (`REQUEST_ID_OFFSET_AFTER_RESET_MS`), until a controller accepts the ID or
   * `LATER_PATIENCE_MS` has passed.
   */
  async #askLater(request: R): Promise<ClusterResponse & { readonly origin: string }> {
    const { clock, requestId } = this.#options
    const endMs = clock.monotonicMs() + LATER_PATIENCE_MS
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, this.#options.waits.pauseMs))
      const write: KeptWrite = { id: requestId(REQUEST_ID_OFFSET_AFTER_RESET_MS), isOpen: false }
      try {
        return await this.#askUntil(request, write)
      } catch (error) {
        if (!isRefusedNew(error, write) || clock.monotonicMs() >= endMs) throw error
      }
    }
  }

  /**
   * Sends the request until a member succeeds or refuses permanently, no member responds, or
   * `patienceMs` has passed.
   */
  async #askUntil(
    request: R,
    write: KeptWrite,
  ): Promise<ClusterResponse & { readonly origin: string }> {
    const { waits, clock } = this.#options
    const endMs = clock.monotonicMs() + waits.patienceMs
    let unknown: ApiRefusalError | null = null
    for (;;) {
      const round = await this.#askEach(request, write)
      if ('answer' in round) return round.answer
      const { refusal, faults } = round
      if (refusal?.code === 'OUTCOME_UNKNOWN') unknown ??= refusal
      // If the outcome of an earlier attempt is unknown, reports the unknown outcome: a later
      // refusal does not prove that the write was not executed.
      if (refusal === null) throw unknown ?? new UnreachableError(faults)
      if (clock.monotonicMs() >= endMs) throw unknown ?? refusal
      await new Promise((resolve) => setTimeout(resolve, waits.pauseMs))
    }
  }

  /**
   * Sends the request to one member after the other, until a member succeeds or refuses
   * permanently. A read is also sent to the next member after `hedgeMs` without a response, and the
   * first response counts: so a stopped member delays the read only by `hedgeMs`, and a slow member
   * can still respond.
   */
  async #askEach(request: R, write: KeptWrite): Promise<Round> {
    const { members } = this.#options
    const order = request.origin === undefined ? members.order() : [request.origin]
    const hedgeMs = this.#hedgeMs(request)
    const faults: MemberFault[] = []
    let refusal: ApiRefusalError | null = null
    const running = new Map<string, Promise<Attempt>>()
    const round = { isOver: false }
    for (const [at, origin] of order.entries()) {
      const isLast = at === order.length - 1
      running.set(origin, this.#attempt(request, write, { origin, isLast, round }))
      while (running.size > 0) {
        const ended = await firstWithin([...running.values()], isLast ? 0 : hedgeMs)
        if (ended === null) break
        running.delete(ended.origin)
        if ('answer' in ended) {
          round.isOver = true
          return { answer: { ...ended.answer, origin: ended.origin } }
        }
        const { error } = ended
        if (error instanceof NoResponseError) {
          write.isOpen ||= error.isSent
          const fault = { origin: ended.origin, reason: error.message }
          if (isWrite(request) && write.id === null && error.isSent)
            throw new OutcomeUnknownError(fault, error)
          faults.push(fault)
        } else {
          if (!(error instanceof ApiRefusalError) || !isPassing(error, request)) throw error
          write.isOpen ||= error.code === 'OUTCOME_UNKNOWN' || error.code === ''
          if (refusal === null || error.code === 'OUTCOME_UNKNOWN' || refusal.code === '') {
            refusal = error
          }
        }
        if (!isLast) break
      }
    }
    return { refusal, faults }
  }

  /**
   * Sends the request to one member, and records in `members` a missing response, a success or a
   * permanent refusal. The promise never rejects: if another member responds first, no caller
   * awaits this promise, and its rejection would be unhandled.
   */
  async #attempt(
    request: R,
    { id }: KeptWrite,
    { origin, isLast, round }: AttemptedMember,
  ): Promise<Attempt> {
    const { members } = this.#options
    const isFirst = request.origin === undefined
    try {
      const timeoutMs = this.#timeoutMs(request, isLast)
      const answer = await this.#askOne(request, { origin, id, timeoutMs })
      // If another member responded first, that member stays first in the order.
      if (!round.isOver) members.succeed(origin, isFirst)
      return { origin, answer }
    } catch (error) {
      if (error instanceof NoResponseError) members.fail(origin)
      else if (error instanceof ApiRefusalError && !isPassing(error, request)) {
        members.succeed(origin, isFirst)
      }
      return { origin, error }
    }
  }

  /** Time after which the client sends a read to the next member as well; 0: never. */
  #hedgeMs(request: R): number {
    return request.origin !== undefined || isWrite(request) ? 0 : this.#options.waits.hedgeMs
  }

  #timeoutMs(request: R, isLast: boolean): number {
    const { timeoutMs, isOnceOnly, origin } = request
    const { answerMs, lastAnswerMs, onceOnlyMs } = this.#options.waits
    const usualMs = timeoutMs ?? (isOnceOnly === true ? onceOnlyMs : answerMs)
    // If the caller named the member, the timeout is not extended, because such a caller decides
    // itself how long to wait. For a hedged read, a longer timeout costs nothing: the client asks
    // the next member without waiting for a slow one.
    const isExtended = origin === undefined && (isLast || this.#hedgeMs(request) > 0)
    return isExtended ? Math.max(usualMs, lastAnswerMs) : usualMs
  }

  /** Sends the request to one member, and once more if the session was renewed. */
  async #askOne(request: R, to: AskedMember): Promise<ClusterResponse> {
    const { session } = this.#options
    const token = request.showsSession === false ? null : await session.token()
    try {
      return await this.#send(request, to, token)
    } catch (error) {
      const isFinal = request.showsSession === false || request.renewsSession === false
      if (isFinal || !(error instanceof ApiRefusalError) || error.status !== 401) throw error
      const renewed = await session.renewed(token, error)
      if (renewed === null) throw error
      return await this.#send(request, to, renewed)
    }
  }

  /**
   * Sends the request to one member. If the cluster was recovered or restored, a member refuses the
   * client's position, which belongs to an earlier generation. Then the client sends the request
   * once more, with the position in that refusal.
   */
  async #send(request: R, to: AskedMember, token: string | null): Promise<ClusterResponse> {
    const shown = this.#position
    try {
      return await this.#sendOnce(request, to, token)
    } catch (error) {
      const isRefusedPosition =
        error instanceof ApiRefusalError &&
        error.status === 400 &&
        isEarlierGeneration(shown, this.#position)
      if (!isRefusedPosition) throw error
      return await this.#sendOnce(request, to, token)
    }
  }

  async #sendOnce(
    request: R,
    { origin, id, timeoutMs }: AskedMember,
    token: string | null,
  ): Promise<ClusterResponse> {
    const { send, readsOwnWrites } = this.#options
    const minIndex = readsOwnWrites && request.showsSession !== false ? this.#position : null
    const headers = {
      ...(token === null ? {} : sessionHeader(token)),
      ...(minIndex === null ? {} : { 'net-min-index': minIndex }),
      ...(id === null ? {} : { 'net-request-id': id }),
      ...request.headers,
    }
    const answer = await send(request, { origin, headers, timeoutMs })
    this.#position = laterLogPosition(this.#position, answer.header('net-index'))
    const { status, body } = answer
    if (status >= 200 && status < 300) return answer
    const hasChallenge = answer.header('www-authenticate') !== null
    throw new ApiRefusalError(status, body, { hasChallenge, origin })
  }
}

/** The ID under which a request may be repeated, and whether a member may have executed it. */
interface KeptWrite {
  readonly id: string | null
  /**
   * True if a member may have executed the write: it did not respond, or its response does not say.
   */
  isOpen: boolean
}

/**
 * Whether members refused a write because of the time in its ID, and certainly no member executed
 * the write.
 */
function isRefusedNew(error: unknown, { isOpen }: KeptWrite): boolean {
  return error instanceof ApiRefusalError && error.code === 'REQUEST_ID_EXPIRED' && !isOpen
}

interface AskedMember {
  readonly origin: string
  /** ID of the write; null for a read, and for a write with `isOnceOnly`. */
  readonly id: string | null
  readonly timeoutMs: number
}

interface AttemptedMember {
  readonly origin: string
  readonly isLast: boolean
  /** `isOver` becomes true once the client uses the response of a member. */
  readonly round: { readonly isOver: boolean }
}

/** The outcome of sending a request to one member. */
type Attempt =
  | { readonly origin: string; readonly answer: ClusterResponse }
  | { readonly origin: string; readonly error: unknown }

/**
 * The outcome of the first attempt to complete; null if no attempt completes within `ms`. 0 means
 * no time limit.
 */
async function firstWithin(
  attempts: readonly Promise<Attempt>[],
  ms: number,
): Promise<Attempt | null> {
  if (ms === 0) return await Promise.race(attempts)
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms)
  })
  try {
    return await Promise.race([...attempts, silence])
  } finally {
    clearTimeout(timer)
  }
}

type Round =
  | { readonly answer: ClusterResponse & { readonly origin: string } }
  | { readonly refusal: ApiRefusalError | null; readonly faults: readonly MemberFault[] }

function isWrite({ method = 'GET', changesNothing }: ClusterRequest): boolean {
  return method !== 'GET' && changesNothing !== true
}

function isPassing({ status, code }: ApiRefusalError, request: ClusterRequest): boolean {
  if (isWrite(request) && request.isOnceOnly === true) {
    // The outcome stays unknown: an error from a proxy does not say whether a controller has
    // executed the write.
    if (code === '' || code === 'OUTCOME_UNKNOWN') return false
  }
  return passingCodes.has(code) || status === 502 || status === 503 || status === 504
}
