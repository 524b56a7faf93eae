import { signal } from '@preact/signals'

import {
  ClusterClient,
  type ClusterResponse,
  type ClusterRequest,
  type HttpMethod,
  type SessionTokenSource,
  type MemberTarget,
  sessionHeader,
} from '../../client/cluster-client.ts'
import { ApiRefusalError, CancelledError, NoResponseError } from '../../client/client-errors.ts'
import { newRequestId } from '../../client/request-id.ts'
import { consoleTimeouts } from '../../client/timeouts.ts'
import { browserClock, type MemberOrigins } from './members.ts'
import type { ServedAnswers } from './served-types.ts'

/** A request of a page, described by its path, without the types of a specific operation. */
export interface PageRequest extends ClusterRequest {
  /** Path with the base of the API and the query. */
  readonly path: string
  readonly body?: unknown
  /** Body that is sent as plain text; set instead of `body`. */
  readonly text?: string
  /** Fields that are sent as a form instead of a body. */
  readonly form?: Readonly<Record<string, string>>
  /**
   * True if the browser's client certificate is presented; the browser sends it only to the
   * controller that serves the page.
   */
  readonly showsCertificate?: boolean
  readonly signal?: AbortSignal
}

export interface OperationRequest extends Omit<PageRequest, 'method' | 'path'> {
  readonly query?: Readonly<Record<string, string>>
}

/** A response, with the origin of the controller that sent it. */
export type ControllerResponse = ClusterResponse & { readonly origin: string }

/** The page's API client, which sends requests with `fetch`. */
export class ConsoleApiClient {
  readonly #members: MemberOrigins
  readonly #session: SessionTokenSource
  readonly #fetch: typeof fetch
  readonly #core: ClusterClient<PageRequest>
  /** When the last response was sent, its controller had not heard from a leader for this long. */
  readonly leaderSilenceMs = signal(0)

  constructor(
    members: MemberOrigins,
    session: SessionTokenSource,
    fetcher: typeof fetch = (input, init) => fetch(input, init),
  ) {
    this.#members = members
    this.#session = session
    this.#fetch = fetcher
    this.#core = new ClusterClient({
      members: members.asked,
      session,
      send: (request, to) => this.#send(request, to),
      waits: consoleTimeouts,
      clock: browserClock,
      requestId: (laterMs) =>
        newRequestId(Date.now() + laterMs, crypto.getRandomValues(new Uint8Array(16))),
      readsOwnWrites: true,
    })
  }

  /** @throws {ApiRefusalError | UnreachableError | OutcomeUnknownError | CancelledError} */
  async ask(request: PageRequest): Promise<ControllerResponse> {
    const { own } = this.#members
    return await this.#core.ask(
      request.showsCertificate === true ? { ...request, origin: own } : request,
    )
  }

  /** Calls an operation with a typed response. */
  async served<K extends keyof ServedAnswers>(
    operation: K,
    request: OperationRequest = {},
  ): Promise<ServedAnswers[K]> {
    const { query, ...rest } = request
    const [method, place] = operation.split(' ') as [HttpMethod, string]
    const path = query === undefined ? place : `${place}?${new URLSearchParams(query)}`
    const { body } = await this.ask({ ...rest, method, path })
    return body as ServedAnswers[K]
  }

  /** The latest log position that any response reflected; null before the first response. */
  get position(): string | null {
    return this.#core.position
  }

  /** Sends a request whose response is read as a stream. */
  async stream(path: string, headers: Headers, signal: AbortSignal): Promise<Response> {
    const token = await this.#session.token()
    const shown = Object.entries(token === null ? {} : sessionHeader(token))
    for (const [name, value] of shown) headers.set(name, value)
    const response = await this.#fetch(this.#members.current.value + path, {
      headers,
      signal,
      credentials: 'omit',
      cache: 'no-store',
    })
    if (!response.ok) throw new ApiRefusalError(response.status, await bodyOf(response))
    return response
  }

  async #send(request: PageRequest, to: MemberTarget): Promise<ClusterResponse> {
    const { method = 'GET', path, body, text: plain, form, signal, showsCertificate } = request
    const timeout = AbortSignal.timeout(to.timeoutMs)
    const headers = new Headers({ accept: 'application/json, */*;q=0.1', ...to.headers })
    if (body !== undefined) headers.set('content-type', 'application/json')
    if (plain !== undefined) headers.set('content-type', 'text/plain')
    const text = body === undefined ? plain : JSON.stringify(body)
    const sent = form === undefined ? text : new URLSearchParams(form)
    try {
      const response = await this.#fetch(to.origin + path, {
        method,
        headers,
        ...(sent === undefined ? {} : { body: sent }),
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        credentials: showsCertificate === true ? 'same-origin' : 'omit',
        cache: 'no-store',
        redirect: 'error',
      })
      const { status } = response
      const answer = { status, body: await bodyOf(response) }
      this.leaderSilenceMs.value = Number(response.headers.get('net-stale-ms') ?? 0)
      return { ...answer, header: (name) => response.headers.get(name) }
    } catch (error) {
      if (signal?.aborted === true) throw new CancelledError(path, { cause: error })
      // The request counts as sent, because a browser does not report whether it was sent.
      throw new NoResponseError(String(error), true, error)
    }
  }
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
