import { signal } from '@preact/signals'

import { type SessionTokenSource, MANAGEMENT_API_PATH } from '../../client/cluster-client.ts'
import { ApiRefusalError } from '../../client/client-errors.ts'
import type { ControllerResponse, ConsoleApiClient, PageRequest } from './api-client.ts'
import {
  CALLBACK_PATH,
  codeRedemptionForm,
  type LogInProvider,
  tokenExchangeForm,
  type FormParameters,
  type SignInTokens,
  readSignInTokens,
  type ReturnedCode,
  TOKEN_PATH,
} from './sign-in.ts'

/**
 * Key of the session in this tab's storage. The session is sent only to members of the cluster.
 */
const STORED = 'flotilla.session'
const CLIENT = '/edge/client/v1'
/** Maximum signers that the log-in form reads for its buttons. */
const PROVIDERS_MAX = 10

/** The session of this tab; `isPartial`: the session lacks a second factor. */
export interface TabSessionState {
  readonly token: string
  readonly identityId: string
  readonly name: string
  /**
   * True if the second factor is still missing; the user must enter it before anything else is
   * shown.
   */
  readonly isPartial: boolean
  /** Expiry of an access token, UTC ms; null for the token of an API session. */
  readonly endsAtMs: number | null
}

export type ConsoleLogInMethod =
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

/**
 * The session of this tab. It is created by a log-in; when it has ended, the user must log in
 * again.
 */
export class TabSession implements SessionTokenSource {
  readonly current = signal<TabSessionState | null>(null)
  /**
   * True if the session ended while a page was open. The page stays in place behind the log-in
   * form.
   */
  readonly hasEnded = signal(false)
  readonly #storage: Storage
  readonly #waiting: (() => void)[] = []
  #client: ConsoleApiClient | null = null
  #renewal: ReturnType<typeof setTimeout> | undefined

  /** Called with the token when the user ends the session. */
  onEnd: (token: string) => void = () => undefined
  readonly #isWatched: () => boolean

  /** @param isWatched returns false while nobody uses the tab; its session should then expire. */
  constructor(storage: Storage, isWatched: () => boolean) {
    this.#storage = storage
    this.#isWatched = isWatched
    this.current.value = stored(storage)
    this.#renewInTime()
  }

  attach(client: ConsoleApiClient): void {
    this.#client = client
  }

  token(): string | null {
    return this.current.value?.token ?? null
  }

  /**
   * Checks the session after a refusal, because a refusal does not say whether the session has
   * ended or the caller lacks a permission.
   */
  async renewed(refused: string | null): Promise<string | null> {
    const token = this.token()
    if (token !== null && token !== refused) return token
    if (refused !== null && (await this.#isAlive(refused))) return null
    if (this.current.value?.token === refused) {
      this.hasEnded.value = this.current.value !== null
      this.#put(null)
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return this.token()
  }

  async logIn(method: ConsoleLogInMethod): Promise<void> {
    const how = method.kind === 'password' ? 'password' : 'cert'
    const body =
      method.kind === 'password' ? { username: method.username, password: method.password } : {}
    const answer = await this.#ask({
      method: 'POST',
      path: `${MANAGEMENT_API_PATH}/authenticate?method=${how}`,
      body,
      showsSession: false,
      showsCertificate: method.kind === 'certificate',
      timeoutMs: 15_000,
    })
    this.#take(answer)
  }

  /** Completes a log-in that was made on the controller's sign-in page, or at a provider. */
  async signIn(returned: ReturnedCode, origin: string): Promise<void> {
    const { signerId } = returned
    if (signerId !== null) return await this.#signInByProvider({ ...returned, signerId }, origin)
    this.#hold(await this.#tokens(codeRedemptionForm(returned, origin)))
  }

  /**
   * A controller redeems the code, because this page may connect only to controllers. The token
   * then logs in like that of any other client.
   */
  async #signInByProvider(
    { code, verifier, signerId, issuer }: ReturnedCode & { readonly signerId: string },
    origin: string,
  ): Promise<void> {
    const { body } = await this.#ask({
      method: 'POST',
      path: `${CLIENT}/provider-log-in/token`,
      body: {
        signerId,
        code,
        codeVerifier: verifier,
        redirectUri: origin + CALLBACK_PATH,
        ...(issuer === null ? {} : { issuer }),
      },
      showsSession: false,
      isOnceOnly: true,
      timeoutMs: 15_000,
    })
    const { data } = body as { readonly data: { readonly token: string } }
    const answer = await this.#ask({
      method: 'POST',
      path: `${MANAGEMENT_API_PATH}/authenticate?method=ext-jwt`,
      body: {},
      headers: { authorization: `Bearer ${data.token}` },
      showsSession: false,
      timeoutMs: 15_000,
    })
    this.#take(answer)
  }

  /** The first `PROVIDERS_MAX` signers at whose identity providers users can log in. */
  async logInProviders(): Promise<readonly LogInProvider[]> {
    const { body } = await this.#ask({
      path: `${CLIENT}/external-jwt-signers?limit=500`,
      showsSession: false,
    })
    const { data } = body as { readonly data: readonly Readonly<Record<string, unknown>>[] }
    const providers = data.flatMap(({ id, name, clientId, scopes, externalAuthUrl }) => {
      if (typeof id !== 'string' || typeof clientId !== 'string' || clientId === '') return []
      if (typeof externalAuthUrl !== 'string' || externalAuthUrl === '') return []
      const names = Array.isArray(scopes) ? scopes.map(String) : []
      return [{ id, name: String(name), clientId, scopes: names }]
    })
    return providers.slice(0, PROVIDERS_MAX)
  }

  /** The address of the authorization endpoint of a signer's identity provider. */
  async authorizationEndpoint(signerId: string): Promise<string> {
    const { body } = await this.#ask({
      method: 'POST',
      path: `${CLIENT}/provider-log-in/endpoint`,
      body: { signerId },
      changesNothing: true,
      showsSession: false,
      timeoutMs: 10_000,
    })
    const { data } = body as { readonly data: { readonly authorizationEndpoint: string } }
    return data.authorizationEndpoint
  }

  async #tokens(form: FormParameters): Promise<SignInTokens> {
    const { body } = await this.#ask({
      method: 'POST',
      path: TOKEN_PATH,
      form,
      showsSession: false,
      isOnceOnly: true,
      timeoutMs: 15_000,
    })
    return readSignInTokens(body)
  }

  #hold({ access, identityId, name, lifetimeMs }: SignInTokens): void {
    const { name: before = '' } = this.current.value ?? {}
    const endsAtMs = Date.now() + lifetimeMs
    this.#put({
      token: access,
      identityId,
      name: name === '' ? before : name,
      isPartial: false,
      endsAtMs,
    })
  }

  /**
   * Exchanges the access token after half of its remaining lifetime, so that the browser never
   * stores a long-lived token. In an unused tab, the token expires.
   */
  #renewInTime(): void {
    clearTimeout(this.#renewal)
    const { token, endsAtMs } = this.current.value ?? {}
    if (token === undefined || endsAtMs === null || endsAtMs === undefined) return
    const waitMs = Math.max(1000, (endsAtMs - Date.now()) / 2)
    this.#renewal = setTimeout(() => {
      if (this.current.value?.token !== token || Date.now() >= endsAtMs) return
      if (!this.#isWatched()) return this.#renewInTime()
      this.#tokens(tokenExchangeForm(token)).then(
        (given) => this.#hold(given),
        // Retries after half of the remaining time. If the token expires first, the next request
        // shows that the session has ended.
        () => this.#renewInTime(),
      )
    }, waitMs)
  }

  /** @param code a TOTP code or a recovery code. */
  async proveFactor(code: string): Promise<void> {
    const { current } = this
    await this.#ask({
      method: 'POST',
      path: `${MANAGEMENT_API_PATH}/authenticate/mfa`,
      body: { code },
      isOnceOnly: true,
    })
    if (current.value !== null) this.#put({ ...current.value, isPartial: false })
  }

  async logOut(): Promise<void> {
    const token = this.token()
    try {
      if (token !== null) {
        await this.#ask({ method: 'DELETE', path: `${MANAGEMENT_API_PATH}/current-api-session` })
      }
    } finally {
      this.hasEnded.value = false
      this.#put(null)
      if (token !== null) this.onEnd(token)
    }
  }

  /** Adopts the session of another tab; null ends this tab's session. */
  adopt(session: TabSessionState | null): void {
    this.hasEnded.value = false
    this.#put(session)
  }

  #take({ body }: ControllerResponse): void {
    const { data } = body as SessionBody
    const { token, identityId, identity, authQueries = [] } = data ?? {}
    if (typeof token !== 'string') throw new TypeError('the answer holds no session')
    this.#put({
      token,
      identityId: String(identityId ?? ''),
      name: String(identity?.name ?? ''),
      isPartial: authQueries.length > 0,
      endsAtMs: null,
    })
  }

  #put(session: TabSessionState | null): void {
    this.current.value = session
    this.#renewInTime()
    if (session === null) this.#storage.removeItem(STORED)
    else this.#storage.setItem(STORED, JSON.stringify(session))
    if (session === null || session.isPartial) return
    this.hasEnded.value = false
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  async #isAlive(token: string): Promise<boolean> {
    if (this.current.value?.isPartial === true) return this.current.value.token === token
    try {
      await this.#ask({ path: `${MANAGEMENT_API_PATH}/current-api-session`, renewsSession: false })
      return true
    } catch (error) {
      // Only a 401 response means that the session has ended, not an unreachable controller.
      return !(error instanceof ApiRefusalError && error.status === 401)
    }
  }

  async #ask(request: PageRequest): Promise<ControllerResponse> {
    if (this.#client === null) throw new TypeError('no client is attached')
    return await this.#client.ask(request)
  }
}

function stored(storage: Storage): TabSessionState | null {
  try {
    const { token, identityId, name, isPartial, endsAtMs } = JSON.parse(
      storage.getItem(STORED) ?? '{}',
    ) as Partial<TabSessionState>
    if (typeof token !== 'string') return null
    return {
      token,
      identityId: identityId ?? '',
      name: name ?? '',
      isPartial: isPartial === true,
      endsAtMs: typeof endsAtMs === 'number' ? endsAtMs : null,
    }
  } catch {
    return null
  }
}
