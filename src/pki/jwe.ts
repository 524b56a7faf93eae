import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPublicKey,
  constants,
  diffieHellman,
  generateKeyPairSync,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
} from 'node:crypto'
import type { JsonWebKey, KeyObject } from 'node:crypto'

import type { JsonObject } from '../lib/canonical-json.ts'

/**
 * The part of compact JWE (RFC 7516) that wrapped secrets need: two key algorithms and one content algorithm (RFC 7518),
 * chosen by the recipient's key and never by the token, so that a forged header can select nothing.
 */
export type KeyAlgorithm = 'ECDH-ES+A256KW' | 'RSA-OAEP-256'

const CONTENT_ALGORITHM = 'A256GCM'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** RFC 3394, 2.2.3.1. */
const WRAP_IV = Buffer.alloc(8, 0xa6)
export const JWE_CHARACTERS_MAX = 32 * 1024

/** Says nothing of the content. */
export class JweError extends Error {
  override readonly name = 'JweError'
}

/** @throws {JweError} when keys of this type are not taken. */
export function keyAlgorithmOf(key: KeyObject): KeyAlgorithm {
  if (key.asymmetricKeyType === 'rsa') return 'RSA-OAEP-256'
  if (key.asymmetricKeyType === 'ec') return 'ECDH-ES+A256KW'
  throw new JweError(`nothing can be wrapped for a key of type ${key.asymmetricKeyType ?? 'none'}`)
}

/** @param context further members of the protected header. */
export function encryptCompact(
  plaintext: Uint8Array,
  recipient: KeyObject,
  context: JsonObject,
): string {
  const contentKey = randomBytes(KEY_BYTES)
  const { header, encryptedKey } = wrapKey(contentKey, recipient)
  const protectedHeader = encode(
    Buffer.from(JSON.stringify({ ...header, enc: CONTENT_ALGORITHM, ...context })),
  )
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', contentKey, nonce)
  cipher.setAAD(Buffer.from(protectedHeader, 'ascii'))
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()])
  return [
    protectedHeader,
    encode(encryptedKey),
    encode(nonce),
    encode(ciphertext),
    encode(cipher.getAuthTag()),
  ].join('.')
}

export interface Decrypted {
  readonly header: Readonly<Record<string, unknown>>
  readonly plaintext: Uint8Array
}

/** @throws {JweError} for anything but a token made for this key by these algorithms; all faults read the same. */
export function decryptCompact(jwe: string, recipient: KeyObject): Decrypted {
  try {
    return decrypt(jwe, recipient)
  } catch (error) {
    throw new JweError('it can not be opened with this key', { cause: error })
  }
}

const COMPACT =
  /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)\.([A-Za-z0-9_-]+)$/

function decrypt(jwe: string, recipient: KeyObject): Decrypted {
  const match = jwe.length > JWE_CHARACTERS_MAX ? null : COMPACT.exec(jwe)
  if (match === null) throw new RangeError('no compact JWE')
  const [, protectedHeader = '', ...parts] = match
  const [encryptedKey, nonce, ciphertext, tag] = parts.map((part) => Buffer.from(part, 'base64url'))
  const header = JSON.parse(Buffer.from(protectedHeader, 'base64url').toString()) as Record<
    string,
    unknown
  >
  if (header['alg'] !== keyAlgorithmOf(recipient) || header['enc'] !== CONTENT_ALGORITHM) {
    throw new RangeError('other algorithms')
  }
  // `zip` would change what is decrypted, `crit` names what must be understood (RFC 7516, 4.1.3 and 4.1.13).
  if ('zip' in header || 'crit' in header) throw new RangeError('an extension that is not taken')
  if (encryptedKey === undefined || ciphertext === undefined) throw new RangeError('no content')
  if (nonce?.length !== NONCE_BYTES || tag?.length !== TAG_BYTES) throw new RangeError('lengths')
  const contentKey = unwrapKey(encryptedKey, recipient, header)
  const decipher = createDecipheriv('aes-256-gcm', contentKey, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(protectedHeader, 'ascii'))
  decipher.setAuthTag(tag)
  const plaintext = Buffer.concat([decipher.update(ciphertext), decipher.final()])
  return { header, plaintext: Uint8Array.from(plaintext) }
}

function wrapKey(
  contentKey: Buffer,
  recipient: KeyObject,
): { readonly header: JsonObject; readonly encryptedKey: Buffer } {
  const algorithm = keyAlgorithmOf(recipient)
  if (algorithm === 'RSA-OAEP-256') {
    return { header: { alg: algorithm }, encryptedKey: publicEncrypt(oaep(recipient), contentKey) }
  }
  const namedCurve = recipient.asymmetricKeyDetails?.namedCurve ?? ''
  const ephemeral = generateKeyPairSync('ec', { namedCurve })
  const { kty = '', crv = '', x = '', y = '' } = ephemeral.publicKey.export({ format: 'jwk' })
  const cipher = createCipheriv(
    'id-aes256-wrap',
    agreedKey(ephemeral.privateKey, recipient, algorithm),
    WRAP_IV,
  )
  return {
    header: { alg: algorithm, epk: { crv, kty, x, y } },
    encryptedKey: Buffer.concat([cipher.update(contentKey), cipher.final()]),
  }
}

function unwrapKey(
  encryptedKey: Buffer,
  recipient: KeyObject,
  header: Readonly<Record<string, unknown>>,
): Buffer {
  const algorithm = keyAlgorithmOf(recipient)
  const contentKey =
    algorithm === 'RSA-OAEP-256'
      ? privateDecrypt(oaep(recipient), encryptedKey)
      : unwrapAgreed(encryptedKey, recipient, header, algorithm)
  if (contentKey.length !== KEY_BYTES) throw new RangeError('a content key of another length')
  return contentKey
}

function unwrapAgreed(
  encryptedKey: Buffer,
  recipient: KeyObject,
  header: Readonly<Record<string, unknown>>,
  algorithm: KeyAlgorithm,
): Buffer {
  if ('apu' in header || 'apv' in header) throw new RangeError('party info is not taken')
  // Importing checks that the point lies on its curve (RFC 7518, 8.1); agreeing, that it is the recipient's curve.
  const ephemeral = createPublicKey({ key: header['epk'] as JsonWebKey, format: 'jwk' })
  const agreed = agreedKey(recipient, ephemeral, algorithm)
  const decipher = createDecipheriv('id-aes256-wrap', agreed, WRAP_IV)
  return Buffer.concat([decipher.update(encryptedKey), decipher.final()])
}

/** ECDH, then Concat KDF with empty party info (RFC 7518, 4.6.2); one round gives the 256 bits. */
function agreedKey(privateKey: KeyObject, publicKey: KeyObject, algorithm: string): Buffer {
  return concatKdf(diffieHellman({ privateKey, publicKey }), algorithm, 256)
}

/** Of at most 256 bits. @param algorithm the AlgorithmID. */
export function concatKdf(
  sharedSecret: Uint8Array,
  algorithm: string,
  bits: number,
  partyU: Uint8Array = new Uint8Array(),
  partyV: Uint8Array = new Uint8Array(),
): Buffer {
  const hash = createHash('sha256').update(bigEndian(1)).update(sharedSecret)
  for (const part of [Buffer.from(algorithm, 'ascii'), partyU, partyV]) {
    hash.update(bigEndian(part.length)).update(part)
  }
  return hash
    .update(bigEndian(bits))
    .digest()
    .subarray(0, bits / 8)
}

function oaep(key: KeyObject): {
  readonly key: KeyObject
  readonly padding: number
  readonly oaepHash: string
} {
  return { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' }
}

function bigEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
