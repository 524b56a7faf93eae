import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { generateRecoveryCode } from './totp.ts'

/** Secrets of one second factor (TOTP secret and recovery codes). */
export interface FactorSecrets {
  /**
   * 20 bytes, as RFC 4226 recommends for SHA-1; for a migrated factor, the length that OpenZiti
   * chose.
   */
  readonly secret: Uint8Array
  readonly recoveryCodes: readonly string[]
}

/**
 * Identity and ids of the factor. These values are authenticated together with the ciphertext, so
 * that the encrypted data of one factor cannot be used for another.
 */
interface FactorContext {
  readonly clusterId: string
  readonly identityId: string
  readonly secretId: string
  readonly codesId: string
}

const SECRET_BYTES = 20
const NONCE_BYTES = 12
const TAG_BYTES = 16
const CIPHER = 'aes-256-gcm'

/** A new TOTP secret with its recovery codes. */
export function generateFactor(recoveryCodes: number): FactorSecrets {
  return {
    secret: Uint8Array.from(randomBytes(SECRET_BYTES)),
    recoveryCodes: newRecoveryCodes(recoveryCodes),
  }
}

/** Generates `count` different codes. */
export function newRecoveryCodes(count: number): string[] {
  const codes = new Set<string>()
  while (codes.size < count) codes.add(generateRecoveryCode(() => randomBytes(6)))
  return [...codes]
}

/**
 * Encrypts a factor with AES-256-GCM and a random nonce.
 * @param key 32 bytes.
 * @returns base64url of nonce, ciphertext and tag.
 */
export function encryptFactorSecrets(
  key: Uint8Array,
  factor: FactorSecrets,
  context: FactorContext,
): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce)
  cipher.setAAD(Buffer.from(canonicalJson({ ...context })))
  const plain = JSON.stringify({
    secret: Buffer.from(factor.secret).toString('base64'),
    recoveryCodes: factor.recoveryCodes,
  })
  const ciphertext = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]).toString('base64url')
}

/**
 * Decrypts a factor; null if it was encrypted with another key or for another context, or was
 * modified.
 */
export function decryptFactorSecrets(
  key: Uint8Array,
  sealed: string,
  context: FactorContext,
): FactorSecrets | null {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length <= NONCE_BYTES + TAG_BYTES) return null
  const end = bytes.length - TAG_BYTES
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
  decipher.setAAD(Buffer.from(canonicalJson({ ...context })))
  decipher.setAuthTag(bytes.subarray(end))
  try {
    const plain = Buffer.concat([
      decipher.update(bytes.subarray(NONCE_BYTES, end)),
      decipher.final(),
    ])
    const { secret, recoveryCodes } = JSON.parse(plain.toString('utf8')) as {
      readonly secret: string
      readonly recoveryCodes: readonly string[]
    }
    return { secret: Uint8Array.from(Buffer.from(secret, 'base64')), recoveryCodes }
  } catch {
    return null
  }
}
