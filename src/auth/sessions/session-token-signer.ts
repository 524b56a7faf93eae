import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { Problem } from '../../lib/problems.ts'
import type { TokenKey, TokenKeys } from '../../ports/token-keys.ts'

const TOKEN_CHARACTERS_MAX = 256
const VERIFIED_TOKENS_MAX = 16_384
const TOKEN = /^([1-9][0-9]{0,8})\.([0-9A-Za-z_-]{1,64})\.([0-9A-Za-z_-]{43})$/

/** The contents of a verified token whose key version is still accepted. */
export interface AcceptedSessionToken {
  readonly sessionId: string
  readonly version: number
  /**
   * True: the token is signed with a version before the current one. Removed controllers may know
   * that version, so the token is valid only from the address at which its session was opened.
   */
  readonly isOfOldKey: boolean
}

/**
 * `unknown-version`: newer than any key that this controller knows; another controller may have
 * just rotated the key. `no-key`: this controller has no current key, so it verifies no token.
 */
type TokenFinding = AcceptedSessionToken | 'invalid' | 'unknown-version' | 'no-key'

interface KnownKey {
  readonly secret: KeyObject
  /** Time at which tokens of this version stop being valid; Infinity for the current version. */
  readonly endsAtMs: number
}

interface Verified {
  readonly sessionId: string
  readonly version: number
}

/**
 * Session tokens `<keyVersion>.<sessionId>.<base64url HMAC-SHA256(clusterKey, sessionId)>`. A
 * controller computes the token when it needs it, so no token is stored, and it detects a forged
 * token without a query to another controller. A token has three parts like a JWT, but its first
 * part is a number.
 */
export class SessionTokenSigner {
  readonly #source: Pick<TokenKeys, 'clusterKeys'>
  #known: readonly TokenKey[] = []
  #keys = new Map<number, KnownKey>()
  /** Key version that signs new tokens; null if this controller has no current key. */
  #signing: number | null = null
  /** Verified tokens, cached because computing a MAC would be most of the cost of a request. */
  readonly #verified = new Map<string, Verified>()
  /** Token of the last call of `tokenOf`: a log-in needs its token twice. */
  #lastIssued: (Verified & { readonly token: string }) | null = null

  /** @param keys read at each use, so that a rotated key takes effect immediately. */
  constructor(keys: Pick<TokenKeys, 'clusterKeys'>) {
    this.#source = keys
  }

  /**
   * @throws {Problem} CLUSTER_NO_LEADER while this controller has no current key and therefore
   * allows no log-in.
   */
  requireKey(): void {
    this.#followKeys()
    if (this.#signing === null) throw noKey()
  }

  /**
   * @param version key version to sign with; by default the current one.
   * @throws {Problem} CLUSTER_NO_LEADER while this controller does not have that key.
   */
  tokenOf(sessionId: string, version?: number): string {
    this.#followKeys()
    const chosen = version ?? this.#signing
    const key = chosen === null ? undefined : this.#keys.get(chosen)
    if (chosen === null || key === undefined) throw noKey()
    const last = this.#lastIssued
    if (last?.sessionId === sessionId && last.version === chosen) return last.token
    const mac = macOf(key.secret, sessionId).toString('base64url')
    const token = `${chosen}.${sessionId}.${mac}`
    this.#lastIssued = { sessionId, version: chosen, token }
    // Caches the token, because a client uses it immediately after the log-in, usually at this
    // controller.
    if (version === undefined) this.#noteVerified(token, { sessionId, version: chosen })
    return token
  }

  /**
   * Verifies a token.
   * @param nowMs UTC.
   */
  judge(token: string, nowMs: number): TokenFinding {
    if (token.length > TOKEN_CHARACTERS_MAX) return 'invalid'
    this.#followKeys()
    const known = this.#verified.get(token)
    if (known !== undefined) return this.#found(known, nowMs)
    const verified = this.#verify(token)
    if (typeof verified === 'string') return verified
    this.#noteVerified(token, verified)
    return this.#found(verified, nowMs)
  }

  #noteVerified(token: string, verified: Verified): void {
    if (this.#verified.size >= VERIFIED_TOKENS_MAX) this.#verified.clear()
    this.#verified.set(token, verified)
  }

  /**
   * Checks the key version of a verified token at each use, because the time during which an
   * earlier version is accepted ends without any event.
   */
  #found({ sessionId, version }: Verified, nowMs: number): TokenFinding {
    const key = this.#keys.get(version)
    if (key === undefined || nowMs >= key.endsAtMs) return 'invalid'
    return { sessionId, version, isOfOldKey: version !== this.#signing }
  }

  #verify(token: string): Verified | 'invalid' | 'unknown-version' | 'no-key' {
    const match = TOKEN.exec(token)
    const sessionId = match?.[2]
    if (match === null || sessionId === undefined) return 'invalid'
    const version = Number(match[1])
    const key = this.#keys.get(version)
    if (this.#signing === null) return 'no-key'
    // An unknown version that is older than the current one was removed, so its tokens are invalid.
    // A newer version may not have arrived at this controller yet.
    if (key === undefined) return version > this.#signing ? 'unknown-version' : 'invalid'
    const expected = macOf(key.secret, sessionId)
    const text = match[3] ?? ''
    const given = Buffer.from(text, 'base64url')
    // The last base64url character has unused bits, so several strings decode to the same bytes.
    // Only the canonical one is accepted.
    if (given.toString('base64url') !== text) return 'invalid'
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'invalid'
    return { sessionId, version }
  }

  /**
   * Adopts changed keys, and drops the tokens that were verified with earlier keys, so that they
   * are verified again.
   */
  #followKeys(): void {
    const keys = this.#source.clusterKeys()
    if (keys === this.#known) return
    this.#keys = new Map(
      keys.map(({ version, secret, overlapEndsAtMs }) => [
        version,
        { secret: createSecretKey(Buffer.from(secret)), endsAtMs: overlapEndsAtMs ?? Infinity },
      ]),
    )
    this.#signing = keys.find(({ overlapEndsAtMs }) => overlapEndsAtMs === null)?.version ?? null
    this.#verified.clear()
    this.#lastIssued = null
    this.#known = keys
  }
}

function noKey(): Problem {
  return new Problem('CLUSTER_NO_LEADER', {
    detail: 'this controller has no key of session tokens yet; retry once it has caught up',
  })
}

function macOf(secret: KeyObject, sessionId: string): Buffer {
  return createHmac('sha256', secret).update(sessionId).digest()
}
