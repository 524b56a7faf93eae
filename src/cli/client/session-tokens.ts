import { CommandFailure, EXIT_DENIED, EXIT_UNREACHABLE } from '../../controller/command-failure.ts'
import { contextTlsKey } from './client-key.ts'
import {
  changeContexts,
  type NetworkContext,
  contextFilePath,
  readContexts,
  type SessionRenewal,
  addOrReplaceContext,
} from './context-file.ts'
import { waitForFileLock } from './file-lock.ts'
import { HttpsFault } from './https-request.ts'

export const sessionRenewalLimits = {
  /** A token that expires within this time is renewed before use. */
  earlyMs: 60_000,
  /** Maximum time that a command waits while another command renews the same tokens. */
  renewalWaitMs: 60_000,
  /** Age above which a command removes another command's lock for renewing the tokens. */
  renewalStaleMs: 55_000,
  /** Time after which a renewal tries no further controller. */
  renewalMs: 40_000,
} as const

/** A session whose token expires and is renewed. */
export interface RenewedSession {
  /**
   * Returns the current token; if it expires soon, renews it first.
   * @throws {CommandFailure}
   */
  token(): Promise<string>
  /**
   * Returns a new token after a controller refused the given one; null: the session has ended.
   */
  renewed(refused: string): Promise<string | null>
}

interface Held extends SessionRenewal {
  readonly token: string
}

/**
 * The tokens of a context. If several commands run at the same time, only one of them renews the
 * tokens, because a controller may accept a refresh token only once. The others read the new tokens
 * from the file.
 */
export class SessionTokens implements RenewedSession {
  readonly #name: string
  readonly #path: string
  readonly #logInAgain: string
  #held: Held
  #underWay: Promise<Held | null> | null = null

  /** @throws {Error} for a context without renewal data. */
  constructor(name: string, context: NetworkContext, logInAgain: string, path = contextFilePath()) {
    const held = heldIn(context)
    if (held === null) throw new Error('the context has no session of OIDC')
    this.#held = held
    this.#name = name
    this.#logInAgain = logInAgain
    this.#path = path
  }

  async token(): Promise<string> {
    const { token, expiresAtMs } = this.#held
    const leftMs = expiresAtMs - Date.now()
    if (leftMs > sessionRenewalLimits.earlyMs) return token
    try {
      const renewed = await this.renewed(token)
      if (renewed !== null) return renewed
    } catch (error) {
      // The renewal failed but the token is still valid, so this command uses it. When the next
      // command renews the token, a controller may be reachable again.
      if (!(error instanceof CommandFailure) || leftMs <= 0) throw error
      return token
    }
    const sentence = `the session has expired or was ended; log in again: ${this.#logInAgain}`
    throw new CommandFailure(EXIT_DENIED, sentence)
  }

  async renewed(refused: string): Promise<string | null> {
    if (this.#held.token !== refused) return this.#held.token
    this.#underWay ??= this.#renew(refused).finally(() => (this.#underWay = null))
    const held = await this.#underWay
    if (held !== null) this.#held = held
    return held?.token ?? null
  }

  async #renew(refused: string): Promise<Held | null> {
    const { renewalWaitMs: waitMs, renewalStaleMs: staleMs } = sessionRenewalLimits
    const release = await waitForFileLock(`${this.#path}.${this.#name}.lock`, { waitMs, staleMs })
    try {
      const context = this.#context()
      const held = context === undefined ? null : heldIn(context)
      if (context === undefined || held === null) return null
      // Another command may have renewed the tokens while this command waited for the lock.
      // @guard log-in-at-the-terminal--renewal
      if (held.token !== refused) return held
      return await this.#refreshed(context, held)
    } finally {
      release()
    }
  }

  async #refreshed(context: NetworkContext, { refreshToken }: Held): Promise<Held | null> {
    const { OidcProviderClient, OidcProviderRefusal } = await import('./oidc-provider-client.ts')
    const { controllers, caPem } = context
    const peer = { caPem, ...contextTlsKey(context) }
    const endMs = performance.now() + sessionRenewalLimits.renewalMs
    const faults: string[] = []
    for (const controller of controllers) {
      if (performance.now() > endMs) break
      try {
        const provider = await OidcProviderClient.discover(controller, peer)
        const { accessToken: token, ...found } = await provider.refresh(refreshToken)
        const { refreshToken: next, expiresAtMs } = found
        return this.#kept({ token, refreshToken: next, expiresAtMs }, refreshToken)
      } catch (error) {
        if (error instanceof HttpsFault) {
          faults.push(`${controller} ${error.message}`)
        } else if (error instanceof OidcProviderRefusal && error.isPassing) {
          faults.push(error.message)
        } else if (error instanceof OidcProviderRefusal && error.code === 'invalid_grant') {
          return this.#since(refreshToken)
        } else throw error
      }
    }
    const sentence = `the session cannot be renewed: ${faults.join('; ')}`
    throw new CommandFailure(EXIT_UNREACHABLE, sentence)
  }

  /** Stores renewed tokens, unless another log-in or command has stored tokens in the meantime. */
  #kept({ token, refreshToken, expiresAtMs }: Held, used: string): Held | null {
    changeContexts((file) => {
      const context = file.contexts[this.#name]
      if (context?.renewal?.refreshToken !== used) return file
      const renewal = { refreshToken, expiresAtMs }
      return addOrReplaceContext(file, this.#name, { ...context, token, renewal })
    }, this.#path)
    const context = this.#context()
    return context === undefined ? null : heldIn(context)
  }

  /**
   * The tokens in the file, if another command has already replaced the refused ones; null
   * otherwise.
   */
  #since(refused: string): Held | null {
    const context = this.#context()
    const held = context === undefined ? null : heldIn(context)
    return held?.refreshToken === refused ? null : held
  }

  #context(): NetworkContext | undefined {
    const { contexts } = readContexts(this.#path)
    return Object.hasOwn(contexts, this.#name) ? contexts[this.#name] : undefined
  }
}

function heldIn({ token, renewal }: NetworkContext): Held | null {
  return token === null || renewal === null || renewal === undefined ? null : { token, ...renewal }
}
