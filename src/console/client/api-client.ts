import { signal } from '@preact/signals'

import type { Members } from './members.ts'
import { laterPosition, newRequestId } from './positions.ts'
import { ApiProblem, Cancelled, OutcomeUnknown, problemOf, Unreachable } from './problem.ts'

export const MANAGEMENT = '/edge/management/v1'
export const FABRIC = '/fabric/v1'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Ask {
  readonly method?: Method
  /** Path with the base of its API and its query. */
  readonly path: string
  readonly body?: unknown
  /** Sent as a form in place of a body. */
  readonly form?: Readonly<Record<string, string>>
  readonly ifMatch?: string
  /** Milliseconds without an answer until the next controller is asked. */
  readonly patienceMs?: number
  /** False: what it does is not kept by request id, so that it is never sent twice. */
  readonly isRepeatable?: boolean
  /** True: it only reads, although it has a body. */
  readonly changesNothing?: boolean
  /** False for log-ins: no session is shown. */
  readonly needsSession?: boolean
  /** The one controller to ask, for what each of them knows of itself. */
  readonly origin?: string
  /** Asks whether the session is still there: a refusal is an answer. */
  readonly isProbe?: boolean
  /** Shows the certificate of the browser, which only the page's own controller can take. */
  readonly showsCertificate?: boolean
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly body: unknown
  readonly etag: string | null
  readonly origin: string
}

const PATIENCE_MS = 2_000
/** A change that cannot be sent twice waits for the one controller that has it. */
const UNREPEATABLE_PATIENCE_MS = 10_000
/** The last controller left is waited for longer: there is no better one. */
const LAST_PATIENCE_MS = 20_000

/** Source of the token of a request, asked again when that is refused. */
export interface SessionSource {
  token(): string | null
  /** The header that shows a token. */
  shown(token: string): readonly [name: string, value: string]
  /** Resolves once there is a session again; false when the caller may not do what it asked. */
  renew(refusedToken: string | null): Promise<boolean>
}

/**
 * Asks the controllers of the cluster: one as long as it answers, the next one when it does not. A
 * change has an id, so that asking the next controller cannot make it twice.
 */
export class ApiClient {
  readonly #members: Members
  readonly #session: SessionSource
  readonly #fetch: typeof fetch
  #position: string | null = null
  /** How long the controller that answered last has not heard from a leader. */
  readonly leaderSilenceMs = signal(0)

  constructor(
    members: Members,
    session: SessionSource,
    fetcher: typeof fetch = (input, init) => fetch(input, init),
  ) {
    this.#members = members
    this.#session = session
    this.#fetch = fetcher
  }

  /**
   * @throws {ApiProblem} what the controller refused.
   * @throws {Unreachable} when no controller answers.
   * @throws {OutcomeUnknown}
   */
  async ask(ask: Ask): Promise<Answer> {
    const isRead = (ask.method ?? 'GET') === 'GET' || ask.changesNothing === true
    const requestId = isRead ? null : newRequestId()
    for (let tries = 0; ; tries += 1) {
      const token = ask.needsSession === false ? null : this.#session.token()
      const answer = await this.#askMembers(ask, requestId, token)
      const isFinal = ask.needsSession === false || ask.isProbe === true || tries > 0
      if (answer.status !== 401 || isFinal) return settled(answer)
      if (!(await this.#session.renew(token))) return settled(answer)
    }
  }

  /** How far the answers have come that were seen; null before the first one. */
  get position(): string | null {
    return this.#position
  }

  /** An answer whose body is read as it comes. */
  async stream(path: string, headers: Headers, signal: AbortSignal): Promise<Response> {
    const origin = this.#members.current.value
    const token = this.#session.token()
    if (token !== null) headers.set(...this.#session.shown(token))
    const response = await this.#fetch(origin + path, {
      headers,
      signal,
      credentials: 'omit',
      cache: 'no-store',
    })
    if (!response.ok) throw problemOf(response.status, await bodyOf(response))
    return response
  }

  async #askMembers(ask: Ask, requestId: string | null, token: string | null): Promise<Answer> {
    const own = this.#members.own
    const only = ask.origin ?? (ask.showsCertificate === true ? own : null)
    const order = only === null ? this.#members.order() : [only]
    let refusal: Answer | null = null
    for (const [at, origin] of order.entries()) {
      const isLast = at === order.length - 1
      try {
        const answer = await this.#askOne(ask, requestId, token, origin, isLast)
        if (answer.status !== 503 || isLast)
          return refusal === null ? answer : better(answer, refusal)
        refusal = answer
      } catch (error) {
        if (error instanceof Cancelled) throw error
        this.#members.failed(origin)
        const isChange = requestId !== null
        if (isChange && ask.isRepeatable === false) {
          throw new OutcomeUnknown(ask.path, { cause: error })
        }
      }
    }
    if (refusal !== null) return refusal
    throw new Unreachable(ask.path)
  }

  async #askOne(
    ask: Ask,
    requestId: string | null,
    token: string | null,
    origin: string,
    isLast: boolean,
  ): Promise<Answer> {
    const { method = 'GET', path, body, form, signal, ifMatch } = ask
    const isRepeatable = requestId === null || ask.isRepeatable !== false
    const usual = isRepeatable ? PATIENCE_MS : UNREPEATABLE_PATIENCE_MS
    const patienceMs = ask.patienceMs ?? usual
    const timeout = AbortSignal.timeout(
      isLast ? Math.max(patienceMs, LAST_PATIENCE_MS) : patienceMs,
    )
    const headers = new Headers({ accept: 'application/json, */*;q=0.1' })
    if (token !== null) headers.set(...this.#session.shown(token))
    if (body !== undefined) headers.set('content-type', 'application/json')
    const text = body === undefined ? undefined : JSON.stringify(body)
    const sent = form === undefined ? text : new URLSearchParams(form)
    if (requestId !== null && isRepeatable) headers.set('net-request-id', requestId)
    if (ifMatch !== undefined) headers.set('if-match', ifMatch)
    if (this.#position !== null && requestId === null) headers.set('net-min-index', this.#position)
    try {
      const response = await this.#fetch(origin + path, {
        method,
        headers,
        ...(sent === undefined ? {} : { body: sent }),
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        credentials: ask.showsCertificate === true ? 'same-origin' : 'omit',
        cache: 'no-store',
        redirect: 'error',
      })
      const parsed = await bodyOf(response)
      this.#position = laterPosition(this.#position, response.headers.get('net-index'))
      this.leaderSilenceMs.value = Number(response.headers.get('net-stale-ms') ?? 0)
      if (response.status !== 503 && ask.origin === undefined) this.#members.answered(origin)
      return { status: response.status, body: parsed, etag: response.headers.get('etag'), origin }
    } catch (error) {
      if (signal?.aborted === true) throw new Cancelled(path, { cause: error })
      throw error
    }
  }
}

/** The refusal to show of two controllers that could not do it: the first one that said why. */
function better(last: Answer, first: Answer): Answer {
  return last.status === 503 ? first : last
}

function settled(answer: Answer): Answer {
  if (answer.status >= 200 && answer.status < 300) return answer
  throw problemOf(answer.status, answer.body)
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text()
  const type = response.headers.get('content-type') ?? ''
  if (!type.includes('json')) return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** True for a refusal because no controller leads: nothing can be changed, reads go on. */
export function isLeaderless(error: unknown): boolean {
  return error instanceof ApiProblem && error.code === 'CLUSTER_NO_LEADER'
}
