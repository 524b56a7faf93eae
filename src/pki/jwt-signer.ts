import { createHash, type KeyObject, sign } from 'node:crypto'

import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from 'jose'

import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { Clock } from '../lib/clock.ts'
import {
  CertificateError,
  parseCertificate,
  parseCertificates,
  parsePrivateKey,
} from './certificate.ts'

/** Longer ones are not looked at. */
export const JWT_CHARACTERS_MAX = 16 * 1024

/** The certificate of a member and the key that it is known by. */
export interface MemberLeaf {
  /** '' where it has not been heard of yet. */
  readonly certificatePem: string
  /** Of the SubjectPublicKeyInfo, as the member record pins it. */
  readonly publicKeySha256: Uint8Array
}

export interface LeafJwtParts {
  readonly privateKeyPem: () => string
  /** Asked at each use: a renewed leaf is in force at once. */
  readonly leafPem: () => string
  /** The current members, this one included or not. */
  readonly members: () => readonly MemberLeaf[]
  readonly clock: Clock
}

interface Leaf {
  readonly kid: string
  readonly key: KeyObject
  readonly algorithm: string
}

/**
 * Signs tokens with the key of a controller's leaf, and verifies those of every member. A leaf that
 * is renewed has another `kid` over the same key: the `kid` is where the search begins, the key is
 * what counts.
 */
export class LeafJwtSigner {
  readonly #parts: LeafJwtParts
  /** By PEM: parsing one takes longer than a signature. No more than were asked for last. */
  #leaves = new Map<string, Leaf | null>()

  constructor(parts: LeafJwtParts) {
    this.#parts = parts
  }

  async sign(claims: JsonObject): Promise<string> {
    const { privateKeyPem, leafPem } = this.#parts
    const key = parsePrivateKey(privateKeyPem())
    const { kid } = this.#own(leafPem())
    return await new SignJWT(claims)
      .setProtectedHeader({ alg: jwtAlgorithmOf(key), kid, typ: 'JWT' })
      .sign(key)
  }

  async verify(
    token: string,
    { isExpiredAllowed }: { readonly isExpiredAllowed: boolean } = { isExpiredAllowed: false },
  ): Promise<JsonObject | null> {
    if (token.length > JWT_CHARACTERS_MAX) return null
    const kid = kidOf(token)
    const leaves = this.#known()
    leaves.sort((a, b) => Number(b.kid === kid) - Number(a.kid === kid))
    const currentDate = new Date(this.#parts.clock.nowMs())
    for (const { key, algorithm } of leaves) {
      try {
        const { payload } = await jwtVerify(token, key, { algorithms: [algorithm], currentDate })
        return payload as JsonObject
      } catch (error) {
        if (isExpiredAllowed && error instanceof errors.JWTExpired)
          return error.payload as JsonObject
        // Not of this key, or not of this time: the next one may be the one.
      }
    }
    return null
  }

  publicJwks(): readonly JsonObject[] {
    this.#known()
    return Array.from(this.#leaves, ([pem, leaf]) =>
      leaf === null ? [] : [jwkOf(pem, leaf)],
    ).flat()
  }

  publicJwk(): JsonObject {
    const pem = this.#parts.leafPem()
    return jwkOf(pem, this.#own(pem))
  }

  signText(text: string): Promise<{ algorithm: string; kid: string; signature: string }> {
    const key = parsePrivateKey(this.#parts.privateKeyPem())
    const { kid, algorithm } = this.#own(this.#parts.leafPem())
    const hash = `sha${algorithm.slice(2)}`
    return new Promise((resolve, reject) => {
      const input = { key, dsaEncoding: 'ieee-p1363' } as const
      sign(hash, Buffer.from(text, 'utf8'), input, (error, signature) => {
        if (error === null) resolve({ algorithm, kid, signature: signature.toString('base64url') })
        else reject(error)
      })
    })
  }

  #own(pem: string): Leaf {
    const leaf = this.#leaves.get(pem) ?? leafOf(pem)
    this.#leaves.set(pem, leaf)
    return leaf
  }

  /**
   * Of this controller first. A certificate over another key than its member is known by counts for
   * nothing.
   */
  #known(): Leaf[] {
    const before = this.#leaves
    const pem = this.#parts.leafPem()
    const own = before.get(pem) ?? leafOf(pem)
    this.#leaves = new Map([[pem, own]])
    const found: Leaf[] = [own]
    for (const { certificatePem, publicKeySha256 } of this.#parts.members()) {
      if (certificatePem === '' || certificatePem === pem) continue
      const known = before.get(certificatePem)
      const leaf = known === undefined ? pinnedLeaf(certificatePem, publicKeySha256) : known
      this.#leaves.set(certificatePem, leaf)
      if (leaf !== null) found.push(leaf)
    }
    return found
  }
}

function jwkOf(pem: string, { kid, key, algorithm }: Leaf): JsonObject {
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

/** @throws {CertificateError} */
function leafOf(pem: string): Leaf {
  const { sha1, native } = parseCertificate(pem)
  const key = native.publicKey
  return { kid: sha1, key, algorithm: jwtAlgorithmOf(key) }
}

function pinnedLeaf(pem: string, publicKeySha256: Uint8Array): Leaf | null {
  try {
    const pinned = parseCertificate(pem).publicKeySha256
    return Buffer.compare(pinned, publicKeySha256) === 0 ? leafOf(pem) : null
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}

function kidOf(token: string): string | null {
  try {
    return decodeProtectedHeader(token).kid ?? null
  } catch {
    return null
  }
}

const ecAlgorithms: Readonly<Record<string, string>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
}

/**
 * What a key signs JWTs by (RFC 7518, 3.1).
 * @throws {CertificateError} `unreadable` for a kind of key that there is no algorithm for.
 */
export function jwtAlgorithmOf(key: KeyObject): string {
  if (key.asymmetricKeyType === 'rsa') return 'RS256'
  const algorithm = ecAlgorithms[key.asymmetricKeyDetails?.namedCurve ?? '']
  if (algorithm !== undefined) return algorithm
  throw new CertificateError('unreadable', 'tokens are signed by EC or RSA keys alone')
}
