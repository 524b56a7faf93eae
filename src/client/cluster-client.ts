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

/** A request, as far as it decides which member to ask and how often. */
export interface ClusterRequest {
  readonly method?: HttpMethod
  readonly headers?: Readonly<Record<string, string>>
  /** Wait for an answer, instead of the usual one. */
  readonly timeoutMs?: number
  /** True: controllers do not recognize a repetition of the write, so it is sent once. */
  readonly isOnceOnly?: boolean
  /** True: it only reads, although it has a body. */
  readonly changesNothing?: boolean
  /** The one member to ask, for what each of them knows of itself. */
  readonly origin?: string
  /** False: it shows no session. */
  readonly showsSession?: boolean
  /** False: the client reports a refused session and does not renew it. */
  readonly renewsSession?: boolean
}

export interface ClusterAnswer {
  readonly status: number
  readonly body: unknown
  header(name: string): string | null
}

/** The member that gets the request, with headers and the maximum wait. */
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

/** Source of the session token that requests show. */
export interface SessionTokenSource {
  /** Token to show now; null: no session is open. */
  token(): string | null | Promise<string | null>
  /**
   * Called after a 401.
   * @returns the token for one more attempt; null: there is no other.
   */
  renewed(refused: string | null, problem: ApiProblem): Promise<string | null>
}

interface ClusterClientOptions<R extends ClusterRequest> {
  readonly members: MemberOrder
  readonly session: SessionTokenSource
  readonly send: Send<R>
  readonly waits: ClientWaits
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** A new ID for a write, made so long after the present time. */
  readonly requestId: (laterMs: number) => string
  /** True if an answer must reflect everything that earlier answers reflected. */
  readonly readsOwnWrites: boolean
}

/** IDs of a later time are refused for the first two seconds after a reset, and a little longer. */
const LATER_PATIENCE_MS = 10_000

/** Codes of refusals that do not last: another member, or the same one later, may succeed. */
const passingCodes: ReadonlySet<string> = new Set([
  'CLUSTER_NO_LEADER',
  'OUTCOME_UNKNOWN',
  'INDEX_NOT_REACHED',
  'SERVER_TOO_MANY_REQUESTS',
  'RATE_LIMITED',
])

/** The header that shows the token of a session. An access token of OIDC is a JWT. */
export function sessionHeader(token: string): Readonly<Record<string, string>> {
  return token.startsWith('ey') ? { authorization: `Bearer ${token}` } : { 'net-session': token }
}

/**
 * Sends requests to the members of a cluster: to one as long as it responds, then to the next. A
 * write has a request ID, so a retry cannot execute it twice. This is the only place that decides
 * about retries, waits, `net-min-index` and the renewal of a session.
 */
export class ClusterClient<R extends ClusterRequest> {
  readonly #options: ClusterClientOptions<R>
  #position: string | null = null

  constructor(options: ClusterClientOptions<R>) {
    this.#options = options
  }

  /** The latest position of the log that an answer reflected; null before the first one. */
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

  /** A new write was refused as too old: log time was reset (`LATER_ID_MS`). */
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

  /** Asks until a member succeeds or refuses permanently, or patience ends. */
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
      // A later refusal does not say that the write was not carried out.
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
    // A caller that names a member knows how long it is worth waiting for.
    return isLast && origin === undefined ? Math.max(usualMs, lastAnswerMs) : usualMs
  }

  /** Sends the request to one member, and again if the session could be renewed. */
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

/** A write that is repeated under one ID; null: it is not repeated. */
interface KeptWrite {
  readonly id: string | null
  /** A member may have carried it out without an answer. */
  isOpen: boolean
}

/** Whether a write that no member can have carried out was refused for the time of its ID. */
function isRefusedNew(error: unknown, { isOpen }: KeptWrite): boolean {
  return error instanceof ApiProblem && error.code === 'REQUEST_ID_EXPIRED' && !isOpen
}

interface AskedMember {
  readonly origin: string
  /** Null: the request is not repeated under an ID. */
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
    // A proxy cannot say whether a controller has carried the write out.
    if (code === '' || code === 'OUTCOME_UNKNOWN') return false
  }
  return passingCodes.has(code) || status === 502 || status === 503 || status === 504
}
