import { readFileSync } from 'node:fs'
import https from 'node:https'
import { formatUuid, newUuidv7 } from '../../../src/lib/text/uuid.ts'
import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { type ApiName, bases, placeOf, ServedAnswers } from '../../support/served-answers.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** The parsed body; an empty object when the body is not JSON. */
  readonly body: Body
}

export interface Body {
  readonly data?: unknown
  readonly meta?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: string; readonly message: string; readonly cause?: unknown }
}

export interface AdminFile {
  readonly username: string
  readonly password: string
  readonly controllers: readonly string[]
  readonly ca: string
}

interface VersionData {
  readonly version: string
  readonly revision: string
  readonly buildDate: string
}

interface RequestOptions {
  /** A value is sent as JSON, a string unchanged. */
  readonly body?: unknown
  readonly headers?: Record<string, string>
  /** Client certificate, presented in the handshake of a separate connection. */
  readonly by?: CertificateWithKey
  readonly timeoutMs?: number
  /** False: the answer comes from a release that serves another document, so it is not checked. */
  readonly isHeld?: boolean
}

/**
 * Documents by program and API. All controllers of one program serve the same document
 * (test/process/probe.test.ts), so the tests request it from only one of them. The key contains the
 * program, because several test files share a process and some run controllers of an earlier
 * release.
 */
const served = new Map<string, ServedAnswers>()

/**
 * A user or script that sends HTTPS requests to one controller. Unless a request excludes this, its
 * answer is checked against the document that the controller serves.
 */
export class Client {
  readonly baseUrl: string
  readonly #agent: https.Agent
  readonly #ca: Buffer
  readonly #documents = new Map<ApiName, ServedAnswers>()
  token: string | null = null

  constructor(baseUrl: string, ca: string) {
    this.baseUrl = baseUrl
    this.#ca = readFileSync(ca)
    this.#agent = new https.Agent({ keepAlive: true, ca: this.#ca, maxSockets: 64 })
  }

  close(): void {
    this.#agent.destroy()
  }

  /**
   * @throws if the connection fails or `timeoutMs` passes, because the outcome is then unknown, and
   * if the answer does not match the document.
   */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const answer = await this.#ask(method, path, options)
    if (options.isHeld !== false) await this.#hold(method, path, answer)
    return answer
  }

  async #hold(method: string, url: string, answer: Answer): Promise<void> {
    const place = placeOf(url)
    if (place === null) return
    const document = this.#documents.get(place.api) ?? (await this.#documentOf(place.api))
    const contentType = String(answer.headers['content-type'])
    const faults = document?.faultsOf(method, place.path, { ...answer, contentType }) ?? []
    if (faults.length > 0) throw new UndeclaredAnswer(method, url, faults)
  }

  /**
   * null if this controller does not return its document; the next answer triggers another attempt.
   */
  async #documentOf(api: ApiName): Promise<ServedAnswers | null> {
    const program = await this.#programOf(api)
    if (program === null) return null
    const key = `${program} ${api}`
    let made = served.get(key)
    if (made === undefined) {
      const answer = await this.#ask('GET', `${bases[api]}/openapi.json`, {}).catch(() => null)
      if (answer?.status !== 200) return null
      made = ServedAnswers.of(answer.text)
      served.set(key, made)
    }
    this.#documents.set(api, made)
    return made
  }

  /** Program of this controller; null if the controller does not report its program. */
  async #programOf(api: ApiName): Promise<string | null> {
    const answer = await this.#ask('GET', `${bases[api]}/version`, {}).catch(() => null)
    if (answer?.status !== 200) return null
    const { version, revision, buildDate } = { ...(answer.body.data as VersionData | undefined) }
    return [version, revision, buildDate].join(' ')
  }

  #ask(method: string, path: string, options: RequestOptions): Promise<Answer> {
    const payload =
      options.body === undefined
        ? null
        : typeof options.body === 'string'
          ? options.body
          : JSON.stringify(options.body)
    const headers: Record<string, string | number> = { ...options.headers }
    if (payload !== null) {
      headers['content-type'] ??= 'application/json'
      headers['content-length'] = Buffer.byteLength(payload)
    }
    if (this.token !== null) headers['net-session'] ??= this.token
    const { by, timeoutMs: timeout = 15_000 } = options
    const connection =
      by === undefined
        ? { agent: this.#agent }
        : { agent: false, ca: this.#ca, cert: by.certificatePem, key: by.privateKeyPem }
    return new Promise((resolve, reject) => {
      const request = https.request(
        this.baseUrl + path,
        { method, headers, ...connection, timeout },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString('utf8')
            let body: Body = {}
            try {
              body = JSON.parse(text) as Body
            } catch {
              // Plain text answers have no body to parse.
            }
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body })
          })
        },
      )
      request.on('timeout', () => request.destroy(new Error('timed out')))
      request.on('error', reject)
      request.end(payload ?? undefined)
    })
  }

  async logIn(admin: AdminFile): Promise<Answer> {
    const answer = await this.request('POST', '/edge/management/v1/authenticate?method=password', {
      body: { username: admin.username, password: admin.password },
    })
    if (answer.status === 200) this.token = (answer.body.data as { token: string }).token
    return answer
  }
}

/**
 * An answer that the document of its API does not describe. It is a permanent failure, so no caller
 * may retry it.
 */
export class UndeclaredAnswer extends Error {
  override readonly name = 'UndeclaredAnswer'

  constructor(method: string, url: string, faults: readonly string[]) {
    super(`${method} ${url} is not answered as its document says:\n${faults.join('\n')}`)
  }
}

/** All services of one controller, name by ID, read page by page. */
export async function allServices(client: Client): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  // Reads in the order of IDs, because pages end at an offset of 100,000.
  for (let last = ''; ;) {
    const filter = encodeURIComponent(`id > "${last}" sort by id limit 500`)
    const answer = await client.request('GET', `/edge/management/v1/services?filter=${filter}`)
    if (answer.status !== 200) throw new Error(`list answered ${answer.status}: ${answer.text}`)
    const page = answer.body.data as { id: string; name: string }[]
    for (const { id, name } of page) found.set(id, name)
    if (page.length < 500) return found
    last = page.at(-1)?.id ?? last
  }
}

export type WriteFate = 'acknowledged' | 'unknown'

/**
 * Creates one service, and retries as a careful client would: with a request ID, on any controller
 * until it is acknowledged; without one, only if the answer says that nothing was changed, or if
 * the controller accepted no connection.
 */
export async function createService(
  clients: readonly Client[],
  first: number,
  name: string,
  options: { hasRequestId: boolean; deadlineMs?: number },
): Promise<WriteFate> {
  const requestId = formatUuid(newUuidv7(Date.now()))
  const headers: Record<string, string> = options.hasRequestId
    ? { 'net-request-id': requestId }
    : {}
  const deadline = performance.now() + (options.deadlineMs ?? PATIENCE_MS)
  for (let attempt = first; ; attempt += 1) {
    const client = clients[attempt % clients.length]
    if (client === undefined) throw new Error('no clients')
    const answer = await client
      .request('POST', '/edge/management/v1/services', {
        body: { name, encryptionRequired: true },
        headers,
      })
      .catch((error: unknown) => {
        if (error instanceof UndeclaredAnswer) throw error
        return error as NodeJS.ErrnoException
      })
    if (!(answer instanceof Error)) {
      if (answer.status === 201) return 'acknowledged'
      const code = answer.body.error?.code
      const isUnchanged = code === 'CLUSTER_NO_LEADER' || code === 'SERVER_TOO_MANY_REQUESTS'
      if (!isUnchanged && code !== 'OUTCOME_UNKNOWN') {
        throw new Error(`create ${name} answered ${answer.status}: ${answer.text}`)
      }
      if (code === 'OUTCOME_UNKNOWN' && !options.hasRequestId) return 'unknown'
    } else if (!options.hasRequestId && answer.code !== 'ECONNREFUSED') {
      // The connection broke during the request: without a request ID the outcome is unknown.
      return 'unknown'
    }
    if (performance.now() > deadline) throw new Error(`create ${name}: no answer in time`)
    await pause(20)
  }
}

/** The pause of a client between two attempts; tests wait for conditions with `until`. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Polls until the condition is true. @throws an error with the last observed value. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | null | undefined | false>,
  timeoutMs = PATIENCE_MS,
  everyMs = 100,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  let last: unknown = 'nothing'
  for (;;) {
    try {
      const answer = await ask()
      if (answer !== null && answer !== undefined && answer !== false) return answer
      last = answer
    } catch (error) {
      if (error instanceof UndeclaredAnswer) throw error
      last = error
    }
    if (performance.now() > deadline)
      throw new Error(`${what}: not within ${timeoutMs} ms (${String(last)})`)
    await pause(everyMs)
  }
}

export function isRunning(pid: number | null): boolean {
  if (pid === null) return false
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
