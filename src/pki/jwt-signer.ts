import { createHash, type KeyObject, sign } from 'node:crypto'

import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { Clock } from '../lib/clock.ts'
import {
  CertificateError,
  parseCertificate,
  parseCertificates,
  parsePrivateKey,
} from './certificate.ts'
import {
  keyJwtAlgorithm,
  type TokenSigningCertificate,
  parseTokenSigningCertificate,
  type VerifiedJwt,
  verifyJwt,
} from './jwt-verifier.ts'

/** A current member's certificate and the pinned hash of its key. */
export interface MemberLeaf {
  /** PEM certificate; '' until this controller knows it. */
  readonly certificatePem: string
  /** SHA-256 of the SubjectPublicKeyInfo, as pinned in the member record. */
  readonly publicKeySha256: Uint8Array
}

/** A removed member's certificate. */
interface FormerLeaf {
  readonly certificatePem: string
  /** Time at which the member was removed, UTC ms. */
  readonly removedAtMs: number
}

/**
 * Claims of a token that was signed with the key of a removed member, before or after the removal.
 */
interface FormerJwt extends VerifiedJwt {
  readonly removedAtMs: number
}

interface ClaimsOptions {
  readonly isExpiredAllowed: boolean
}

interface LeafJwtSignerDeps {
  readonly privateKeyPem: () => string
  /**
   * Returns this controller's leaf; called at each use, so that a renewed leaf takes effect
   * immediately.
   */
  readonly leafPem: () => string
  /** The leaves of the current members; this controller's own leaf may be missing. */
  readonly members: () => readonly MemberLeaf[]
  /** The current members with their pinned keys; called at each use of a token. */
  readonly pinned: () => readonly Pick<MemberLeaf, 'publicKeySha256'>[]
  /**
   * `former`: leaves of removed members. `removed`: keys that the membership configuration lists as
   * removed.
   */
  readonly former: () => readonly FormerLeaf[]
  readonly removed: () => readonly Pick<MemberLeaf, 'publicKeySha256'>[]
  readonly clock: Clock
}

const FORMER_LEAVES_MAX = 32

/**
 * Signs tokens with the key of this controller's leaf, and verifies tokens of every member. A
 * renewed leaf has a new `kid` but the same key, so verification uses the `kid` only to choose the
 * key to try first.
 */
export class LeafJwtSigner {
  readonly #deps: LeafJwtSignerDeps
  /**
   * Parsed leaves by PEM, cached because parsing takes longer than a signature. `#known` drops the
   * leaves that no member has any more.
   */
  #leaves = new Map<string, TokenSigningCertificate | null>()

  readonly #formerLeaves = new Map<string, TokenSigningCertificate | null>()
  #key: { readonly pem: string; readonly key: KeyObject } | null = null

  constructor(deps: LeafJwtSignerDeps) {
    this.#deps = deps
  }

  async sign(claims: JsonObject): Promise<string> {
    const { privateKeyPem, leafPem } = this.#deps
    const key = this.#keyOf(privateKeyPem())
    const { kid } = this.#own(leafPem())
    const alg = keyJwtAlgorithm(key)
    const text = `${base64urlJson({ alg, kid, typ: 'JWT' })}.${base64urlJson(claims)}`
    return `${text}.${await signatureOf(text, key, alg)}`
  }

  /** The private key in a PEM string; cached, because parsing it takes as long as a signature. */
  #keyOf(pem: string): KeyObject {
    if (this.#key?.pem !== pem) this.#key = { pem, key: parsePrivateKey(pem) }
    return this.#key.key
  }

  async verify(token: string, options?: ClaimsOptions): Promise<JsonObject | null> {
    return (await this.verifyWithKey(token, options))?.claims ?? null
  }

  async verifyWithKey(
    token: string,
    { isExpiredAllowed }: ClaimsOptions = { isExpiredAllowed: false },
  ): Promise<VerifiedJwt | null> {
    return await verifyJwt(token, this.#known(), this.#deps.clock.nowMs(), isExpiredAllowed)
  }

  async verifyFormer(token: string): Promise<FormerJwt | null> {
    const { former, removed, clock } = this.#deps
    for (const { certificatePem, removedAtMs } of former()) {
      const leaf = this.#formerLeaf(certificatePem)
      // @guard tokens-of-a-former-member--removed
      if (leaf === null || !hasKey(removed(), leaf.keyId) || this.isMemberKey(leaf.keyId)) continue
      const found = await verifyJwt(token, [leaf], clock.nowMs())
      if (found !== null) return { ...found, removedAtMs }
    }
    return null
  }

  #formerLeaf(pem: string): TokenSigningCertificate | null {
    let leaf = this.#formerLeaves.get(pem)
    if (leaf === undefined) {
      leaf = readableLeaf(pem)
      if (this.#formerLeaves.size >= FORMER_LEAVES_MAX) this.#formerLeaves.clear()
      this.#formerLeaves.set(pem, leaf)
    }
    return leaf
  }

  isMemberKey(keyId: string): boolean {
    return hasKey(this.#deps.pinned(), keyId)
  }

  publicJwks(): readonly JsonObject[] {
    this.#known()
    return Array.from(this.#leaves, ([pem, leaf]) =>
      leaf === null ? [] : [jwkOf(pem, leaf)],
    ).flat()
  }

  publicJwk(): JsonObject {
    const pem = this.#deps.leafPem()
    return jwkOf(pem, this.#own(pem))
  }

  async signText(text: string): Promise<{ algorithm: string; kid: string; signature: string }> {
    const key = this.#keyOf(this.#deps.privateKeyPem())
    const { kid, algorithm } = this.#own(this.#deps.leafPem())
    return { algorithm, kid, signature: await signatureOf(text, key, algorithm) }
  }

  #own(pem: string): TokenSigningCertificate {
    const leaf = this.#leaves.get(pem) ?? parseTokenSigningCertificate(pem)
    this.#leaves.set(pem, leaf)
    return leaf
  }

  /**
   * The known leaves, this controller's first. Ignores a certificate whose key differs from the
   * member's pinned key.
   */
  #known(): TokenSigningCertificate[] {
    const before = this.#leaves
    const pem = this.#deps.leafPem()
    const own = before.get(pem) ?? parseTokenSigningCertificate(pem)
    this.#leaves = new Map([[pem, own]])
    const found: TokenSigningCertificate[] = [own]
    for (const { certificatePem, publicKeySha256 } of this.#deps.members()) {
      if (certificatePem === '' || certificatePem === pem) continue
      const known = before.get(certificatePem)
      const leaf = known === undefined ? pinnedLeaf(certificatePem, publicKeySha256) : known
      this.#leaves.set(certificatePem, leaf)
      if (leaf !== null) found.push(leaf)
    }
    return found
  }
}

function base64urlJson(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('base64url')
}

/**
 * Signature in base64url (RFC 7518, 3). A P-256 signature is computed in this thread: it takes 25
 * µs, less than half of the overhead of the thread pool. Other keys take up to a millisecond and
 * use the pool.
 */
function signatureOf(text: string, key: KeyObject, algorithm: string): string | Promise<string> {
  const hash = `sha${algorithm.slice(2)}`
  const bytes = Buffer.from(text, 'utf8')
  const input = { key, dsaEncoding: 'ieee-p1363' } as const
  if (algorithm === 'ES256') return sign(hash, bytes, input).toString('base64url')
  return new Promise((resolve, reject) => {
    sign(hash, bytes, input, (error, signature) => {
      if (error === null) resolve(signature.toString('base64url'))
      else reject(error)
    })
  })
}

function jwkOf(pem: string, { kid, key, algorithm }: TokenSigningCertificate): JsonObject {
  const chain = parseCertificates(pem)
  const [{ der }] = chain
  return {
    ...(key.export({ format: 'jwk' }) as JsonObject),
    use: 'sig',
    alg: algorithm,
    kid,
    x5c: chain.map((certificate) => Buffer.from(certificate.der).toString('base64')),
    x5t: createHash('sha1').update(der).digest('base64url'),
    'x5t#S256': createHash('sha256').update(der).digest('base64url'),
  }
}

function hasKey(keys: readonly Pick<MemberLeaf, 'publicKeySha256'>[], keyId: string): boolean {
  for (const { publicKeySha256 } of keys) if (hexOf(publicKeySha256) === keyId) return true
  return false
}

function readableLeaf(pem: string): TokenSigningCertificate | null {
  try {
    return parseTokenSigningCertificate(pem)
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}

function pinnedLeaf(pem: string, publicKeySha256: Uint8Array): TokenSigningCertificate | null {
  try {
    const pinned = parseCertificate(pem).publicKeySha256
    return Buffer.compare(pinned, publicKeySha256) === 0 ? parseTokenSigningCertificate(pem) : null
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}

/**
 * Key ids in hex, cached because each request with an access token needs the key ids of all
 * members.
 */
const hexByKey = new WeakMap<Uint8Array, string>()

function hexOf(key: Uint8Array): string {
  let hex = hexByKey.get(key)
  if (hex === undefined) hexByKey.set(key, (hex = Buffer.from(key).toString('hex')))
  return hex
}
