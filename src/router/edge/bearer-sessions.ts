import type { ModelRevocation } from '../../../proto/gen/router_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { CertificateError } from '../../pki/certificate.ts'
import { type OidcToken, parseOidcClaims, looksLikeAccessToken } from '../../pki/oidc-token.ts'
import {
  tokenKeyId,
  type TokenSigningCertificate,
  parseTokenSigningCertificate,
  verifyJwt,
} from '../../pki/jwt-verifier.ts'
import { edgeLimits } from './limits.ts'
import type { RouterDataModel } from '../model/router-data-model.ts'
import type { EdgeApiSession } from './edge-api-session.ts'
import { addToSet, removeFromSet } from '../../lib/keyed-sets.ts'

const { bearerTokensMax, bearerUnshownMs } = edgeLimits
/** Number in OpenZiti's data model for a key that verifies tokens. */
const VERIFIES_TOKENS = 0
/** First characters of an OIDC token: base64url of `{"`. */
const TOKEN_START = 'ey'

export interface BearerSessionsDeps {
  readonly model: Pick<RouterDataModel, 'contents' | 'onChanged'>
  readonly clock: Clock
  /** Returns whether a client channel uses the token. */
  readonly isShown: (token: string) => boolean
  /** Called with tokens that have become invalid. */
  readonly onEnded: (tokens: ReadonlySet<string>) => void
}

/** A token with a valid signature, and the key that signed it. */
interface Verified {
  readonly token: OidcToken
  readonly keyId: string
}

interface Known extends Verified {
  readonly session: EdgeApiSession
  readonly sinceMs: number
}

/**
 * API sessions of OIDC, by access token. The router verifies the tokens with the controllers' keys
 * in its data model, because controllers do not send these sessions. A token is valid until it
 * expires, it is revoked, its identity is disabled or deleted, or the data model no longer contains
 * the key that signed it.
 */
export class BearerSessions {
  readonly #deps: BearerSessionsDeps
  readonly #byToken = new Map<string, Known>()
  /**
   * Tokens by the IDs whose records can end them: the IDs of the identity, of the session, and of
   * the token.
   */
  readonly #byId = new Map<string, Set<Known>>()
  readonly #leaves = new Map<string, TokenSigningCertificate | null>()
  /** IDs of the keys in the current model that sign tokens. */
  #keyIds: ReadonlySet<string> = new Set()
  readonly #stop: () => void

  constructor(deps: BearerSessionsDeps) {
    this.#deps = deps
    this.#readKeys()
    this.#stop = deps.model.onChanged((changedIds) => {
      if (changedIds === null) {
        this.#readKeys()
        this.sweep()
      } else this.#look(changedIds)
    })
  }

  /** Whether the text begins like an OIDC token. */
  static isMeant(text: string): boolean {
    return text.startsWith(TOKEN_START)
  }

  get size(): number {
    return this.#byToken.size
  }

  find(text: string): EdgeApiSession | null {
    const known = this.#byToken.get(text)
    return known !== undefined && this.#isGood(known) ? known.session : null
  }

  /**
   * Waits until the token is valid, because a key, an identity or the whole data model may arrive
   * shortly after the client.
   * @param signal aborted when the client disconnects.
   * @returns null if the token is invalid or cannot be verified in time, the client has
   * disconnected, or `bearerTokensMax` other tokens are stored.
   */
  async await(
    text: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<EdgeApiSession | null> {
    if (!looksLikeAccessToken(text)) return null
    const { model, clock } = this.#deps
    const endMs = clock.monotonicMs() + timeoutMs
    let found = await this.#verify(text)
    for (;;) {
      if (found !== null && this.#isGood(found)) return this.#keep(found)
      const leftMs = endMs - clock.monotonicMs()
      if (leftMs <= 0 || signal.aborted || !this.#mayBecomeGood(text, found)) return null
      const { promise, resolve } = Promise.withResolvers<void>()
      const wake = (): void => resolve()
      const stop = model.onChanged(wake)
      const timer = setTimeout(wake, leftMs)
      // @guard clients-that-leave--token
      signal.addEventListener('abort', wake)
      await promise
      signal.removeEventListener('abort', wake)
      clearTimeout(timer)
      stop()
      if (found === null && this.#isKeyKnown(text)) found = await this.#verify(text)
    }
  }

  /**
   * Ends tokens that have expired, or that are invalid according to the current data model, and
   * forgets older tokens that no connected client uses.
   */
  sweep(): void {
    this.#endBad(this.#byToken.values())
    const { clock, isShown } = this.#deps
    const unshownMs = clock.monotonicMs() - bearerUnshownMs
    for (const known of this.#byToken.values()) {
      if (known.sinceMs < unshownMs && !isShown(known.token.text)) this.#forget(known)
    }
  }

  /**
   * Checks only tokens that depend on the changed records, because the data model may change
   * constantly.
   */
  #look(changedIds: ReadonlySet<string>): void {
    const named = new Set<Known>()
    for (const id of changedIds) for (const known of this.#byId.get(id) ?? []) named.add(known)
    this.#endBad(named)
  }

  #endBad(all: Iterable<Known>): void {
    const ended = new Set<string>()
    for (const known of all) {
      if (this.#isGood(known)) continue
      ended.add(known.token.text)
      this.#forget(known)
    }
    if (ended.size > 0) this.#deps.onEnded(ended)
  }

  #forget(known: Known): void {
    this.#byToken.delete(known.token.text)
    for (const id of idsThatEnd(known)) removeFromSet(this.#byId, id, known)
  }

  stop(): void {
    this.#stop()
  }

  /**
   * Whether a later data model can make the token valid. A signature that was verified is not
   * verified again, even if the model changes repeatedly while the client waits.
   */
  #mayBecomeGood(text: string, found: Verified | null): boolean {
    if (found === null) return !this.#isKeyKnown(text)
    return this.#deps.model.contents.identities.get(found.token.identityId) === undefined
  }

  #isKeyKnown(text: string): boolean {
    const { publicKeys } = this.#deps.model.contents
    return publicKeys.get(tokenKeyId(text) ?? '')?.usages.includes(VERIFIES_TOKENS) === true
  }

  async #verify(text: string): Promise<Verified | null> {
    const leaves = [...this.#leaves.values()].filter((leaf) => leaf !== null)
    const found = await verifyJwt(text, leaves, this.#deps.clock.nowMs())
    const token = found === null ? null : parseOidcClaims(text, found.claims, 'access')
    return found === null || token === null ? null : { token, keyId: found.keyId }
  }

  #keep({ token, keyId }: Verified): EdgeApiSession | null {
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
    const kept = { token, keyId, session, sinceMs: this.#deps.clock.monotonicMs() }
    this.#byToken.set(text, kept)
    for (const id of idsThatEnd(kept)) addToSet(this.#byId, id, kept)
    return session
  }

  #isGood({ token, keyId }: Verified): boolean {
    const { tokenId, identityId, sessionId, issuedAtMs, expiresAtMs } = token
    const { model, clock } = this.#deps
    const { identities, revocations } = model.contents
    // @guard access-token-at-a-router--time
    if (clock.nowMs() >= expiresAtMs) return false
    // When the data model no longer contains the key of a removed controller, the tokens that this
    // controller signed end.
    // @guard access-token-at-a-router--removed
    if (!this.#keyIds.has(keyId)) return false
    // @guard access-token-at-a-router--disabled
    if (identities.get(identityId)?.disabled !== false) return false
    // @guard access-token-at-a-router--token
    if (revocations.get(tokenId)?.type === 'JTI') return false
    // @guard access-token-at-a-router--session
    if (revocations.get(sessionId)?.type === 'API_SESSION') return false
    const ofIdentity = revocations.get(identityId)
    // @guard access-token-at-a-router--identity
    return ofIdentity?.type !== 'IDENTITY' || issuedAtMs >= cutOffMs(ofIdentity)
  }

  /** Loads the keys of the controllers from the current model. */
  #readKeys(): void {
    const before = new Map(this.#leaves)
    this.#leaves.clear()
    for (const [kid, { usages, data }] of this.#deps.model.contents.publicKeys) {
      // @guard access-token-at-a-router--usage
      if (!usages.includes(VERIFIES_TOKENS)) continue
      const known = before.get(kid)
      this.#leaves.set(kid, known === undefined ? readLeaf(data) : known)
    }
    this.#keyIds = new Set([...this.#leaves.values()].flatMap((leaf) => leaf?.keyId ?? []))
  }
}

function idsThatEnd({ token }: Verified): readonly string[] {
  return [token.identityId, token.sessionId, token.tokenId]
}

function cutOffMs({ issuedBefore }: ModelRevocation): number {
  if (issuedBefore === undefined) return Infinity
  return Number(issuedBefore.seconds) * 1000 + issuedBefore.nanos / 1_000_000
}

function readLeaf(der: Uint8Array): TokenSigningCertificate | null {
  try {
    return parseTokenSigningCertificate(Uint8Array.from(der))
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}
