import { createHash, createPublicKey, type KeyObject } from 'node:crypto'

import { CertificateError } from './certificate.ts'

/** Maximum bytes of a public key in DER. An RSA key of 8,192 bits has about 1,060 bytes. */
const SPKI_BYTES_MAX = 2048
const RSA_BITS_MIN = 2048
const RSA_BITS_MAX = 8192
const CURVES: readonly string[] = ['prime256v1', 'secp384r1']

/**
 * Parses a key of an allowed kind for controllers: EC P-256 or P-384, RSA of 2,048 to 8,192 bits.
 * @throws {CertificateError} `unreadable`, with the allowed kinds in the message.
 */
export function parsePublicKey(spki: Uint8Array): KeyObject {
  if (spki.length > SPKI_BYTES_MAX) throw new CertificateError('unreadable', 'the key is too large')
  let key: KeyObject
  try {
    key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
  } catch (error) {
    throw new CertificateError('unreadable', 'not a readable public key', error)
  }
  if (!isAllowedKey(key)) {
    throw new CertificateError(
      'unreadable',
      'keys are EC P-256, EC P-384, or RSA of 2,048 to 8,192 bits: make one of these',
    )
  }
  return key
}

function isAllowedKey(key: KeyObject): boolean {
  const { namedCurve = '', modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  switch (key.asymmetricKeyType) {
    case 'ec':
      return CURVES.includes(namedCurve)
    case 'rsa':
      return modulusLength >= RSA_BITS_MIN && modulusLength <= RSA_BITS_MAX
    default:
      return false
  }
}

/** SHA-256 of a public key, 32 bytes; member records pin this hash. */
export function spkiSha256(spki: Uint8Array): Uint8Array {
  return Uint8Array.from(createHash('sha256').update(spki).digest())
}
