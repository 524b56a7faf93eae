import { expect } from 'vitest'
import { type ApiName, bases, placeOf, ServedAnswers } from '../../support/served-answers.ts'
import type { TestController } from './controller.ts'

export interface Body {
  readonly data?: unknown
  readonly meta?: {
    readonly apiVersion: string
    readonly apiEnrollmentVersion: string
    readonly filterableFields?: readonly string[]
    readonly ignoredFields?: readonly string[]
    readonly warnings?: readonly string[]
    readonly pagination?: {
      readonly limit: number
      readonly offset: number
      readonly totalCount: number
    }
  }
  readonly error?: {
    readonly code: string
    readonly message: string
    readonly requestId: string
    readonly cause?: Readonly<Record<string, unknown>>
    readonly data?: Readonly<Record<string, unknown>>
  }
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | number | string[] | undefined>>
  readonly text: string
  readonly body: Body
}

export const management = bases.management
export const client = bases.client
export const fabric = bases.fabric

/** Caches the document, which is a megabyte: each controller creates it once for all callers. */
const servedBy = new WeakMap<TestController, Map<ApiName, ServedAnswers>>()

/**
 * A client of a controller. It compares responses of the client, management and fabric APIs with
 * the served document: the status must be declared, and a JSON body must match its schema.
 */
export class CallerOf {
  readonly #controller: TestController
  token: string | null = null
  /** Source address of the caller's requests. */
  address = '127.0.0.1'
  /** True if the caller sends its requests through the admin socket. */
  isAtSocket = false

  constructor(controller: TestController) {
    this.#controller = controller
  }

  async call(
    method: string,
    url: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> {
    const sent: Record<string, string> = { ...headers }
    if (this.token !== null) sent['net-session'] ??= this.token
    if (body !== undefined) sent['content-type'] ??= 'application/json'
    const { app, socket } = this.#controller
    const answer = await (this.isAtSocket ? socket : app).inject({
      method: method as 'GET',
      url,
      headers: sent,
      remoteAddress: this.address,
      ...(body === undefined
        ? {}
        : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const type = String(answer.headers['content-type'])
    const reply: Reply = {
      status: answer.statusCode,
      headers: answer.headers,
      text: answer.payload,
      body: type.startsWith('application/json') ? (JSON.parse(answer.payload) as Body) : {},
    }
    await this.#hold(method, url, reply)
    return reply
  }

  get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    return this.call('GET', url, undefined, headers)
  }

  async logIn(
    credentials: { readonly username: string; readonly password: string },
    base: string = management,
  ): Promise<Reply> {
    const reply = await this.call('POST', `${base}/authenticate?method=password`, credentials)
    if (reply.status === 200) this.token = (reply.body.data as { token: string }).token
    return reply
  }

  /** The document of one of the controller's APIs. */
  async served(api: ApiName): Promise<ServedAnswers> {
    const known = servedBy.get(this.#controller) ?? new Map<ApiName, ServedAnswers>()
    servedBy.set(this.#controller, known)
    let served = known.get(api)
    if (served === undefined) {
      const answer = await this.#controller.app.inject(`${bases[api]}/openapi.json`)
      served = ServedAnswers.of(answer.payload)
      known.set(api, served)
    }
    return served
  }

  async #hold(method: string, url: string, reply: Reply): Promise<void> {
    const place = placeOf(url)
    if (place === null) return
    const served = await this.served(place.api)
    const contentType = String(reply.headers['content-type'])
    const faults = served.faultsOf(method, place.path, { ...reply, contentType })
    // Tests send tens of thousands of requests, so an assertion is made only after a fault.
    if (faults.length > 0) {
      expect(faults, `the response to ${method} ${url} matches the API document`).toEqual([])
    }
  }
}
