import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { ValidateFunction } from 'ajv'
import { expect } from 'vitest'
import type { TestController } from './controller.ts'

export interface Body {
  readonly data?: unknown
  readonly meta?: {
    readonly apiVersion: string
    readonly apiEnrollmentVersion: string
    readonly filterableFields?: readonly string[]
    readonly ignoredFields?: readonly string[]
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

type Item = Readonly<Record<string, unknown>>
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
}
interface DescribedOperation {
  readonly responses: Readonly<Record<string, { readonly content?: Item }>>
}

const bases = {
  client: '/edge/client/v1',
  management: '/edge/management/v1',
  fabric: '/fabric/v1',
} as const
type ApiName = keyof typeof bases

export const management = bases.management
export const client = bases.client
export const fabric = bases.fabric

/**
 * Somebody talking to a controller. Every answer is held against the document that the controller serves: the status
 * must be declared, the body must satisfy its schema, and show nothing that the schema does not name.
 */
export class CallerOf {
  readonly #controller: TestController
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true })
  readonly #documents = new Map<ApiName, Document>()
  readonly #checks = new Map<string, ValidateFunction>()
  token: string | null = null
  /** Where its requests come from. */
  address = '127.0.0.1'

  constructor(controller: TestController) {
    this.#controller = controller
    addFormats.default(this.#ajv)
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
    const answer = await this.#controller.app.inject({
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

  async #hold(method: string, url: string, reply: Reply): Promise<void> {
    const path = (url.split('?')[0] ?? '').replace(/\/$/, '')
    for (const api of Object.keys(bases) as ApiName[]) {
      if (path !== bases[api] && !path.startsWith(`${bases[api]}/`)) continue
      const template = await this.#templateOf(api, path.slice(bases[api].length) || '/')
      const described =
        template === null
          ? undefined
          : this.#documents.get(api)?.paths[template]?.[method.toLowerCase()]
      if (template !== null && described !== undefined) {
        this.#holdAgainst(api, template, method.toLowerCase(), described, reply)
      }
    }
  }

  #holdAgainst(
    api: ApiName,
    template: string,
    method: string,
    described: DescribedOperation,
    reply: Reply,
  ): void {
    const where = `${method} ${api} ${template} ${reply.status}`
    const response = described.responses[reply.status]
    expect(response, `${where} is declared; it said ${reply.text}`).toBeDefined()
    const content = response?.content
    if (content === undefined) {
      expect(reply.text, where).toBe('')
      return
    }
    const type = String(reply.headers['content-type']).split(';')[0] ?? ''
    expect(Object.keys(content), where).toContain(type)
    if (type !== 'application/json') return
    const steps = [
      'paths',
      template,
      method,
      'responses',
      String(reply.status),
      'content',
      type,
      'schema',
    ]
    const pointer = steps.map((step) =>
      encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1')),
    )
    const ref = `${api}#/${pointer.join('/')}`
    let check = this.#checks.get(ref)
    if (check === undefined) {
      check = this.#ajv.compile({ $ref: ref })
      this.#checks.set(ref, check)
    }
    const isValid = check(JSON.parse(reply.text))
    expect(isValid ? [] : check.errors, `${where}: ${reply.text.slice(0, 500)}`).toEqual([])
  }

  async #templateOf(api: ApiName, path: string): Promise<string | null> {
    let document = this.#documents.get(api)
    if (document === undefined) {
      const answer = await this.#controller.app.inject(`${bases[api]}/openapi.json`)
      document = JSON.parse(answer.payload) as Document
      this.#documents.set(api, document)
      this.#ajv.addSchema(closed(document) as Item, api)
    }
    if (document.paths[path] !== undefined) return path
    const matches = Object.keys(document.paths).filter((template) =>
      new RegExp(`^${template.replace(/\{[A-Za-z]+\}/g, '[^/]+')}$`).test(path),
    )
    return matches[0] ?? null
  }
}

/** Details with their members closed: a member that the document does not name is a fault too. */
function closed(document: Document): unknown {
  const { components, ...rest } = document as unknown as {
    components: { schemas: Record<string, Item> }
  }
  const schemas = Object.fromEntries(
    Object.entries(components.schemas).map(([name, schema]) => {
      const isDetail = name.endsWith('Detail') || name.endsWith('Result')
      return [name, isDetail ? { ...schema, additionalProperties: false } : schema]
    }),
  )
  return { ...rest, components: { schemas } }
}
