import type { Clock } from '../lib/clock.ts'
import type { MemberOrder } from './members.ts'
import { laterPosition } from './position.ts'
import {
  ApiProblem,
  type MemberFault,
  NoAnswerError,
  OutcomeUnknownError,
  UnreachableError,
} from './problem.ts'
import { LATER_ID_MS } from './request-id.ts'
import type { ClientWaits } from './waits.ts'

export const MANAGEMENT = '/edge/management/v1'
export const FABRIC = '/fabric/v1'

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The parts of a request that decide which member receives it, and how often. */
export interface ClusterRequest {
  readonly method?: HttpMethod
  readonly headers?: Readonly<Record<string, string>>
  /** Maximum wait for an answer, in place of the default. */
  readonly timeoutMs?: number
  /**
   * True: controllers do not recognize a repeated request of this kind, so the client sends the
   * write only once.
   */
  readonly isOnceOnly?: boolean
  /** True: the request only reads, although it has a body. */
  readonly changesNothing?: boolean
  /** The only member that may receive the request, for data that each member has of itself. */
  readonly origin?: string
  /** False: the request contains no session token. */
  readonly showsSession?: boolean
  /** False: the client reports a refused session and does not renew it. */
  readonly renewsSession?: boolean
}

export interface ClusterAnswer {
  readonly status: number
  readonly body: unknown
  header(name: string): string | null
}

/** The member that receives the request, with headers and the maximum wait. */
export interface SendTo {
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/**
 * Sends a request to one member.
 * @throws {NoAnswerError}
 */
type Send<R extends ClusterRequest> = (request: R, to: SendTo) => Promise<ClusterAnswer>

/** Source of the session token for requests. */
export interface SessionTokenSource {
  /** The current token; null: no session is open. */
  token(): string | null | Promise<string | null>
  /**
   * Called after a 401.
   * @returns the token for one more attempt; null: no other token is available.
   */
  renewed(refused: string | null, problem: ApiProblem): Promise<string | null>
}

interface ClusterClientOptions<R extends ClusterRequest> {
  readonly members: MemberOrder
  readonly session: SessionTokenSource
  readonly send: Send<R>
  readonly waits: ClientWaits
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** A new ID for a write, with a time that is `laterMs` ahead of the clock. */
  readonly requestId: (laterMs: number) => string
  /** True: an answer must reflect everything that earlier answers reflected. */
  readonly readsOwnWrites: boolean
}

/**
 * IDs with a later time are refused for the first two seconds after a reset; retries last a little
 * longer than that.
 */
const LATER_PATIENCE_MS = 10_000

/** Codes of temporary refusals: another member, or the same one later, may accept the request. */
const passingCodes: ReadonlySet<string> = new Set([
  'CLUSTER_NO_LEADER',
  'OUTCOME_UNKNOWN',
  'INDEX_NOT_REACHED',
  'SERVER_TOO_MANY_REQUESTS',
  'RATE_LIMITED',
])

/** The header that contains the token of a session. An access token of OIDC is a JWT. */
export function sessionHeader(token: string): Readonly<Record<string, string>> {
  return token.startsWith('ey') ? { authorization: `Bearer ${token}` } : { 'net-session': token }
}

/**
 * Sends requests to the members of a cluster: to one member as long as it answers, then to the
 * next. A write has a request ID, so a retry cannot execute it twice. Only this class decides about
 * retries, waits, `net-min-index` and the renewal of a session.
 */
export class ClusterClient<R extends ClusterRequest> {
  readonly #options: ClusterClientOptions<R>
  #position: string | null = null

  constructor(options: ClusterClientOptions<R>) {
    this.#options = options
  }

  /** The latest log position that an answer reflected; null before the first one. */
  get position(): string | null {
    return this.#position
  }

  /**
   * @throws {ApiProblem} when a controller refuses.
   * @throws {UnreachableError} when no member answers.
   * @throws {OutcomeUnknownError} when a write that cannot be sent twice has no answer.
   */
  async ask(request: R): Promise<ClusterAnswer & { readonly origin: string }> {
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
   * Repeats a new write that was refused as too old because log time was reset, with a later ID
   * (`LATER_ID_MS`).
   */
  async #askLater(request: R): Promise<ClusterAnswer & { readonly origin: string }> {
    const { clock, requestId } = this.#options
    const endMs = clock.monotonicMs() + LATER_PATIENCE_MS
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, this.#options.waits.pauseMs))
      const write: KeptWrite = { id: requestId(LATER_ID_MS), isOpen: false }
      try {
        return await this.#askUntil(request, write)
      } catch (error) {
        if (!isRefusedNew(error, write) || clock.monotonicMs() >= endMs) throw error
      }
    }
  }

  /**
   * Sends the request until a member succeeds or refuses permanently, or `patienceMs` has passed.
   */
  async #askUntil(
    request: R,
    write: KeptWrite,
  ): Promise<ClusterAnswer & { readonly origin: string }> {
    const { waits, clock } = this.#options
    const endMs = clock.monotonicMs() + waits.patienceMs
    let unknown: ApiProblem | null = null
    for (;;) {
      const round = await this.#askEach(request, write)
      if ('answer' in round) return round.answer
      const { refusal, faults } = round
      if (refusal?.code === 'OUTCOME_UNKNOWN') unknown ??= refusal
      // A refusal that follows an unknown outcome does not prove that the write was not executed.
      if (refusal === null) throw unknown ?? new UnreachableError(faults)
      if (clock.monotonicMs() >= endMs) throw unknown ?? refusal
      await new Promise((resolve) => setTimeout(resolve, waits.pauseMs))
    }
  }

  /** Tries each member once, until one succeeds or refuses permanently. */
  async #askEach(request: R, write: KeptWrite): Promise<Round> {
    const { id } = write
    const { members } = this.#options
    const order = request.origin === undefined ? members.order() : [request.origin]
    const isFirst = request.origin === undefined
    const faults: MemberFault[] = []
    let refusal: ApiProblem | null = null
    for (const [at, origin] of order.entries()) {
      try {
        const timeoutMs = this.#timeoutMs(request, at === order.length - 1)
        const answer = await this.#askOne(request, { origin, id, timeoutMs })
        members.succeed(origin, isFirst)
        return { answer: { ...answer, origin } }
      } catch (error) {
        if (error instanceof NoAnswerError) {
          members.fail(origin)
          write.isOpen ||= error.isSent
          const fault = { origin, reason: error.message }
          if (isWrite(request) && id === null && error.isSent)
            throw new OutcomeUnknownError(fault, error)
          faults.push(fault)
          continue
        }
        if (!(error instanceof ApiProblem)) throw error
        if (!isPassing(error, request)) {
          members.succeed(origin, isFirst)
          throw error
        }
        write.isOpen ||= error.code === 'OUTCOME_UNKNOWN' || error.code === ''
        if (refusal === null || error.code === 'OUTCOME_UNKNOWN' || refusal.code === '') {
          refusal = error
        }
      }
    }
    return { refusal, faults }
  }

  #timeoutMs({ timeoutMs, isOnceOnly, origin }: R, isLast: boolean): number {
    const { answerMs, lastAnswerMs, onceOnlyMs } = this.#options.waits
    const usualMs = timeoutMs ?? (isOnceOnly === true ? onceOnlyMs : answerMs)
    // A caller that names a member decides itself how long to wait.
    return isLast && origin === undefined ? Math.max(usualMs, lastAnswerMs) : usualMs
  }

  /** Sends the request to one member, and once more if the session was renewed. */
  async #askOne(request: R, to: AskedMember): Promise<ClusterAnswer> {
    const { session } = this.#options
    const token = request.showsSession === false ? null : await session.token()
    try {
      return await this.#send(request, to, token)
    } catch (error) {
      const isFinal = request.showsSession === false || request.renewsSession === false
      if (isFinal || !(error instanceof ApiProblem) || error.status !== 401) throw error
      const renewed = await session.renewed(token, error)
      if (renewed === null) throw error
      return await this.#send(request, to, renewed)
    }
  }

  async #send(
    request: R,
    { origin, id, timeoutMs }: AskedMember,
    token: string | null,
  ): Promise<ClusterAnswer> {
    const { send, readsOwnWrites } = this.#options
    const minIndex = readsOwnWrites && request.showsSession !== false ? this.#position : null
    const headers = {
      ...(token === null ? {} : sessionHeader(token)),
      ...(minIndex === null ? {} : { 'net-min-index': minIndex }),
      ...(id === null ? {} : { 'net-request-id': id }),
      ...request.headers,
    }
    const answer = await send(request, { origin, headers, timeoutMs })
    this.#position = laterPosition(this.#position, answer.header('net-index'))
    const { status, body } = answer
    if (status >= 200 && status < 300) return answer
    const hasChallenge = answer.header('www-authenticate') !== null
    throw new ApiProblem(status, body, { hasChallenge, origin })
  }
}

/** A write that may be repeated with the same ID; null: it is not repeated. */
interface KeptWrite {
  readonly id: string | null
  /** True: a member that gave no answer may have executed it. */
  isOpen: boolean
}

/**
 * Whether a write was refused because of the time in its ID, and no member can have executed it.
 */
function isRefusedNew(error: unknown, { isOpen }: KeptWrite): boolean {
  return error instanceof ApiProblem && error.code === 'REQUEST_ID_EXPIRED' && !isOpen
}

interface AskedMember {
  readonly origin: string
  /** Null: the request has no ID and is not repeated. */
  readonly id: string | null
  readonly timeoutMs: number
}

type Round =
  | { readonly answer: ClusterAnswer & { readonly origin: string } }
  | { readonly refusal: ApiProblem | null; readonly faults: readonly MemberFault[] }

function isWrite({ method = 'GET', changesNothing }: ClusterRequest): boolean {
  return method !== 'GET' && changesNothing !== true
}

function isPassing({ status, code }: ApiProblem, request: ClusterRequest): boolean {
  if (isWrite(request) && request.isOnceOnly === true) {
    // A proxy does not know whether a controller has executed the write.
    if (code === '' || code === 'OUTCOME_UNKNOWN') return false
  }
  return passingCodes.has(code) || status === 502 || status === 503 || status === 504
}
