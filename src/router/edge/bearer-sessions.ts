import type { ModelRevocation } from '../../../proto/gen/router_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { CertificateError } from '../../pki/certificate.ts'
import { type OidcToken, oidcTokenOf, seemsAccessToken } from '../../pki/oidc-token.ts'
import { keyIdOf, type TokenLeaf, tokenLeafOf, verifyJwt } from '../../pki/jwt-verifier.ts'
import { routerProgramLimits } from '../limits.ts'
import type { RouterDataModel } from '../model/router-data-model.ts'
import type { EdgeApiSession } from './api-sessions.ts'

const { bearerTokensMax, bearerUnshownMs } = routerProgramLimits
/** A use of a key, by the numbers of the API family. */
const VERIFIES_TOKENS = 0
/** Text that a token of OIDC begins with: base64url of `{"`. */
const TOKEN_START = 'ey'

export interface BearerSessionsParts {
  readonly model: Pick<RouterDataModel, 'contents' | 'onChanged'>
  readonly clock: Clock
  /** Whether a channel is open by the token. */
  readonly isShown: (token: string) => boolean
  /** Called with tokens that are no longer good. */
  readonly onEnded: (tokens: ReadonlySet<string>) => void
}

interface Known {
  readonly token: OidcToken
  readonly session: EdgeApiSession
  readonly sinceMs: number
}

/**
 * API sessions of OIDC, by the access tokens that clients show: the router verifies them by the
 * keys of the controllers in its data model, and no controller tells of them. One counts while its
 * time is not over, its identity is there and not disabled, and nothing that names it is revoked.
 */
export class BearerSessions {
  readonly #parts: BearerSessionsParts
  readonly #byToken = new Map<string, Known>()
  readonly #leaves = new Map<string, TokenLeaf | null>()
  readonly #stop: () => void

  constructor(parts: BearerSessionsParts) {
    this.#parts = parts
    this.#stop = parts.model.onChanged(() => this.sweep())
  }

  /** Whether the text is judged here, by what it looks like. */
  static isMeant(text: string): boolean {
    return text.startsWith(TOKEN_START)
  }

  get size(): number {
    return this.#byToken.size
  }

  find(text: string): EdgeApiSession | null {
    const known = this.#byToken.get(text)
    return known !== undefined && this.#isGood(known.token) ? known.session : null
  }

  /**
   * A key, an identity or the model itself may arrive a moment after the client does.
   * @returns null when the token is not good, or is not found good in time.
   */
  async await(text: string, timeoutMs: number): Promise<EdgeApiSession | null> {
    if (!seemsAccessToken(text)) return null
    const { model, clock } = this.#parts
    const endMs = clock.monotonicMs() + timeoutMs
    let token = await this.#verify(text)
    for (;;) {
      if (token !== null && this.#isGood(token)) return this.#keep(token)
      const leftMs = endMs - clock.monotonicMs()
      if (leftMs <= 0 || !this.#mayBecomeGood(text, token)) return null
      const { promise, resolve } = Promise.withResolvers<void>()
      const stop = model.onChanged(resolve)
      const timer = setTimeout(resolve, leftMs)
      await promise
      clearTimeout(timer)
      stop()
      if (token === null && this.#isKeyKnown(text)) token = await this.#verify(text)
    }
  }

  /** Tells of tokens whose time is over, or of which the model says so. */
  sweep(): void {
    const { clock, isShown, onEnded } = this.#parts
    const unshownMs = clock.monotonicMs() - bearerUnshownMs
    const ended = new Set<string>()
    for (const [text, { token, sinceMs }] of this.#byToken) {
      const isGood = this.#isGood(token)
      if (!isGood) ended.add(text)
      if (!isGood || (sinceMs < unshownMs && !isShown(text))) this.#byToken.delete(text)
    }
    if (ended.size > 0) onEnded(ended)
  }

  stop(): void {
    this.#stop()
  }

  /** A signature is verified once, however often the model changes while its client waits. */
  #mayBecomeGood(text: string, token: OidcToken | null): boolean {
    if (token === null) return !this.#isKeyKnown(text)
    return this.#parts.model.contents.identities.get(token.identityId) === undefined
  }

  #isKeyKnown(text: string): boolean {
    const { publicKeys } = this.#parts.model.contents
    return publicKeys.get(keyIdOf(text) ?? '')?.usages.includes(VERIFIES_TOKENS) === true
  }

  async #verify(text: string): Promise<OidcToken | null> {
    const claims = await verifyJwt(text, this.#keys(), this.#parts.clock.nowMs())
    return claims === null ? null : oidcTokenOf(text, claims, 'access')
  }

  #keep(token: OidcToken): EdgeApiSession | null {
    const { text, sessionId, identityId, fingerprints } = token
    const known = this.#byToken.get(text)
    if (known !== undefined) return known.session
    if (this.#byToken.size >= bearerTokensMax) return null
    const session = {
      id: sessionId,
      token: text,
      identityId,
      fingerprints: new Set(fingerprints.map((print) => print.toLowerCase())),
      controllerId: '',
    }
    this.#byToken.set(text, { token, session, sinceMs: this.#parts.clock.monotonicMs() })
    return session
  }

  #isGood({ identityId, sessionId, issuedAtMs, expiresAtMs }: OidcToken): boolean {
    const { model, clock } = this.#parts
    const { identities, revocations } = model.contents
    if (clock.nowMs() >= expiresAtMs) return false
    if (identities.get(identityId)?.disabled !== false) return false
    if (revocations.get(sessionId)?.type === 'API_SESSION') return false
    const ofIdentity = revocations.get(identityId)
    return ofIdentity?.type !== 'IDENTITY' || issuedAtMs >= cutOffMs(ofIdentity)
  }

  /** Keys of the controllers, as the model has them now. */
  #keys(): TokenLeaf[] {
    const { publicKeys } = this.#parts.model.contents
    for (const kid of this.#leaves.keys()) if (!publicKeys.has(kid)) this.#leaves.delete(kid)
    const found: TokenLeaf[] = []
    for (const [kid, { usages, data }] of publicKeys) {
      if (!usages.includes(VERIFIES_TOKENS)) continue
      const known = this.#leaves.get(kid)
      const leaf = known === undefined ? readLeaf(data) : known
      this.#leaves.set(kid, leaf)
      if (leaf !== null) found.push(leaf)
    }
    return found
  }
}

function cutOffMs({ issuedBefore }: ModelRevocation): number {
  if (issuedBefore === undefined) return Infinity
  return Number(issuedBefore.seconds) * 1000 + issuedBefore.nanos / 1_000_000
}

function readLeaf(der: Uint8Array): TokenLeaf | null {
  try {
    return tokenLeafOf(Uint8Array.from(der))
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}
