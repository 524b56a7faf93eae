import { signal } from '@preact/signals'

import { type Answer, type ApiClient, MANAGEMENT, type SessionSource } from './api-client.ts'
import { ApiProblem } from './problem.ts'

/** Held for the tab alone, and sent to members of the cluster alone. */
const STORED = 'flotilla.session'

export interface Session {
  readonly token: string
  readonly identityId: string
  readonly name: string
  /** A second factor is asked for before anything else. */
  readonly isPartial: boolean
}

export type LogInMethod =
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  | { readonly kind: 'certificate' }

interface SessionBody {
  readonly data?: {
    readonly token?: unknown
    readonly identityId?: unknown
    readonly identity?: { readonly name?: unknown }
    readonly authQueries?: readonly unknown[]
  }
}

/** The session of this tab: begun by a log-in, asked for again when it has ended. */
export class TabSession implements SessionSource {
  readonly current = signal<Session | null>(null)
  /** True when a session ended while a page was open: the page stays as it is below the log-in. */
  readonly hasEnded = signal(false)
  readonly #storage: Storage
  readonly #waiting: ((isThere: boolean) => void)[] = []
  #client: ApiClient | null = null

  constructor(storage: Storage) {
    this.#storage = storage
    this.current.value = stored(storage)
  }

  attach(client: ApiClient): void {
    this.#client = client
  }

  token(): string | null {
    return this.current.value?.token ?? null
  }

  /**
   * A refusal says neither that the session has ended nor that the caller may not: the session
   * itself is looked at to tell them apart.
   */
  async renew(refusedToken: string | null): Promise<boolean> {
    const token = this.token()
    if (token !== null && token !== refusedToken) return true
    if (refusedToken !== null && (await this.#isAlive(refusedToken))) return false
    if (this.current.value?.token === refusedToken) {
      this.hasEnded.value = this.current.value !== null
      this.#put(null)
    }
    return await new Promise((resolve) => this.#waiting.push(resolve))
  }

  async logIn(method: LogInMethod): Promise<void> {
    const how = method.kind === 'password' ? 'password' : 'cert'
    const body =
      method.kind === 'password' ? { username: method.username, password: method.password } : {}
    const answer = await this.#ask({
      method: 'POST',
      path: `${MANAGEMENT}/authenticate?method=${how}`,
      body,
      needsSession: false,
      showsCertificate: method.kind === 'certificate',
      patienceMs: 15_000,
    })
    this.#take(answer)
  }

  /** @param code of an authenticator app, or a recovery code. */
  async proveFactor(code: string): Promise<void> {
    const { current } = this
    await this.#ask({
      method: 'POST',
      path: `${MANAGEMENT}/authenticate/mfa`,
      body: { code },
      isRepeatable: false,
    })
    if (current.value !== null) this.#put({ ...current.value, isPartial: false })
  }

  async logOut(): Promise<void> {
    const token = this.token()
    try {
      if (token !== null) {
        await this.#ask({ method: 'DELETE', path: `${MANAGEMENT}/current-api-session` })
      }
    } finally {
      this.hasEnded.value = false
      this.#put(null)
    }
  }

  #take({ body }: Answer): void {
    const { data } = body as SessionBody
    const { token, identityId, identity, authQueries = [] } = data ?? {}
    if (typeof token !== 'string') throw new TypeError('the answer holds no session')
    this.#put({
      token,
      identityId: String(identityId ?? ''),
      name: String(identity?.name ?? ''),
      isPartial: authQueries.length > 0,
    })
  }

  #put(session: Session | null): void {
    this.current.value = session
    if (session === null) this.#storage.removeItem(STORED)
    else this.#storage.setItem(STORED, JSON.stringify(session))
    if (session === null || session.isPartial) return
    this.hasEnded.value = false
    for (const resolve of this.#waiting.splice(0)) resolve(true)
  }

  async #isAlive(token: string): Promise<boolean> {
    if (this.current.value?.isPartial === true) return this.current.value.token === token
    try {
      await this.#ask({ path: `${MANAGEMENT}/current-api-session`, isProbe: true })
      return true
    } catch (error) {
      // Only a refusal says that it has ended; a controller that cannot be reached says nothing.
      return !(error instanceof ApiProblem && error.status === 401)
    }
  }

  async #ask(ask: Parameters<ApiClient['ask']>[0]): Promise<Answer> {
    if (this.#client === null) throw new TypeError('no client is attached')
    return await this.#client.ask(ask)
  }
}

function stored(storage: Storage): Session | null {
  try {
    const { token, identityId, name, isPartial } = JSON.parse(
      storage.getItem(STORED) ?? '{}',
    ) as Partial<Session>
    if (typeof token !== 'string') return null
    return { token, identityId: identityId ?? '', name: name ?? '', isPartial: isPartial === true }
  } catch {
    return null
  }
}
