import { signal } from '@preact/signals'

import {
  ClusterClient,
  type ClusterAnswer,
  type ClusterRequest,
  type HttpMethod,
  type SessionTokenSource,
  type SendTo,
  sessionHeader,
} from '../../client/cluster-client.ts'
import { ApiProblem, CancelledError, NoAnswerError } from '../../client/problem.ts'
import { newRequestId } from '../../client/request-id.ts'
import { pageWaits } from '../../client/waits.ts'
import { browserClock, type Members } from './members.ts'
import type { ServedAnswers } from './served-types.ts'

/** A request of a page, before an operation and its answer type are chosen. */
export interface PageRequest extends ClusterRequest {
  /** Path with the base of its API and its query. */
  readonly path: string
  readonly body?: unknown
  /** Sent as a form in place of a body. */
  readonly form?: Readonly<Record<string, string>>
  /**
   * Presents the certificate of the browser, which the browser sends only to the controller of the
   * page.
   */
  readonly showsCertificate?: boolean
  readonly signal?: AbortSignal
}

export interface OperationRequest extends Omit<PageRequest, 'method' | 'path'> {
  readonly query?: Readonly<Record<string, string>>
}

/** An answer, with the origin of the controller that gave it. */
export type Answer = ClusterAnswer & { readonly origin: string }

/** The API client of the page, which sends requests by `fetch`. */
export class ApiClient {
  readonly #members: Members
  readonly #session: SessionTokenSource
  readonly #fetch: typeof fetch
  readonly #core: ClusterClient<PageRequest>
  /** Time since the controller that answered last heard from a leader. */
  readonly leaderSilenceMs = signal(0)

  constructor(
    members: Members,
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
      waits: pageWaits,
      clock: browserClock,
      requestId: (laterMs) =>
        newRequestId(Date.now() + laterMs, crypto.getRandomValues(new Uint8Array(16))),
      readsOwnWrites: true,
    })
  }

  /** @throws {ApiProblem | UnreachableError | OutcomeUnknownError | CancelledError} */
  async ask(request: PageRequest): Promise<Answer> {
    const { own } = this.#members
    return await this.#core.ask(
      request.showsCertificate === true ? { ...request, origin: own } : request,
    )
  }

  /** Calls an operation whose answer has a type. */
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

  /** The latest position of the log that an answer reflected; null before the first one. */
  get position(): string | null {
    return this.#core.position
  }

  /** Sends a request whose answer is read as a stream. */
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
    if (!response.ok) throw new ApiProblem(response.status, await bodyOf(response))
    return response
  }

  async #send(request: PageRequest, to: SendTo): Promise<ClusterAnswer> {
    const { method = 'GET', path, body, form, signal, showsCertificate } = request
    const timeout = AbortSignal.timeout(to.timeoutMs)
    const headers = new Headers({ accept: 'application/json, */*;q=0.1', ...to.headers })
    if (body !== undefined) headers.set('content-type', 'application/json')
    const text = body === undefined ? undefined : JSON.stringify(body)
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
      // A browser does not report whether the request was sent.
      throw new NoAnswerError(String(error), true, error)
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
