import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { signingVersion } from '../../pki/cluster-key.ts'
import type { ClusterKey } from '../../pki/cluster-key.ts'

const TOKEN_CHARACTERS_MAX = 256
const VERIFIED_TOKENS_MAX = 16_384
const TOKEN = /^([1-9][0-9]{0,8})\.([0-9A-Za-z_-]{1,64})\.([0-9A-Za-z_-]{43})$/

/**
 * Session tokens `<keyVersion>.<sessionId>.<base64url HMAC-SHA256(clusterKey, sessionId)>`: derived, so they are stored
 * nowhere, and a forged one is refused without asking anybody. Three parts, but no JWT: the first is a number.
 */
export class TokenSigner {
  readonly #clusterKey: () => ClusterKey
  #known: ClusterKey | null = null
  #secrets = new Map<number, KeyObject>()
  /** Tokens found good under the key in force, to their session ids: a MAC for each request is most of its own cost. */
  readonly #verified = new Map<string, string>()

  /** @param clusterKey asked at each use, so that a rotated key is in force at once. */
  constructor(clusterKey: () => ClusterKey) {
    this.#clusterKey = clusterKey
  }

  tokenOf(sessionId: string): string {
    const { version } = signingVersion(this.#clusterKey())
    const secret = this.#secretOf(version)
    if (secret === undefined) throw new RangeError(`no cluster key of version ${version}`)
    return `${version}.${sessionId}.${macOf(secret, sessionId).toString('base64url')}`
  }

  /** @returns the session id, or null for anything but a token signed by a version of the key that is still kept. */
  sessionIdOf(token: string): string | null {
    if (token.length > TOKEN_CHARACTERS_MAX) return null
    this.#followKey()
    const known = this.#verified.get(token)
    if (known !== undefined) return known
    const sessionId = this.#verify(token)
    if (sessionId === null) return null
    if (this.#verified.size >= VERIFIED_TOKENS_MAX) this.#verified.clear()
    this.#verified.set(token, sessionId)
    return sessionId
  }

  #verify(token: string): string | null {
    const match = TOKEN.exec(token)
    const sessionId = match?.[2]
    if (match === null || sessionId === undefined) return null
    const secret = this.#secretOf(Number(match[1]))
    if (secret === undefined) return null
    const expected = macOf(secret, sessionId)
    const given = Buffer.from(match[3] ?? '', 'base64url')
    if (given.length !== expected.length) return null
    return timingSafeEqual(given, expected) ? sessionId : null
  }

  #secretOf(version: number): KeyObject | undefined {
    this.#followKey()
    return this.#secrets.get(version)
  }

  /** What was verified under a key that is gone is verified again. */
  #followKey(): void {
    const key = this.#clusterKey()
    if (key === this.#known) return
    this.#secrets = new Map(
      key.map((one) => [one.version, createSecretKey(Buffer.from(one.secret))] as const),
    )
    this.#verified.clear()
    this.#known = key
  }
}

function macOf(secret: KeyObject, sessionId: string): Buffer {
  return createHmac('sha256', secret).update(sessionId).digest()
}
