import type { KeyObject } from 'node:crypto'

import { compactDecrypt, CompactEncrypt, decodeProtectedHeader } from 'jose'

import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { parsePrivateKey } from '../certificate.ts'
import { parsePublicKey } from '../public-key.ts'

/** Most bytes of one secret; a private key in PEM is the largest. */
export const SECRET_BYTES_MAX = 16 * 1024
/** Most characters of one wrapped secret. */
export const WRAPPED_CHARACTERS_MAX = 32 * 1024

/**
 * Kind of a wrapped secret, and its receiver. Part of what is authenticated: one can not be passed
 * off as another.
 */
export interface SecretContext {
  readonly clusterId: string
  readonly name: string
  readonly version: number
  readonly nodeId: string
}

/** One sentence; never holds a part of the secret. */
export class WrappedSecretError extends Error {
  override readonly name = 'WrappedSecretError'
}

const CONTEXT_MEMBER = 'flotilla'
const CONTENT_ALGORITHM = 'A256GCM'

/**
 * A secret that the holder of one private key can open: compact JWE, ECDH-ES+A256KW for EC keys,
 * RSA-OAEP-256 for RSA keys, A256GCM. It hides and binds; it does not tell who made it (anyone can
 * wrap for a public key), so it is to be believed only where it comes out of the replicated state.
 * @throws {CertificateError} for a key that is none or not allowed.
 */
export async function wrapSecret(
  secret: Uint8Array,
  publicKeySpki: Uint8Array,
  context: SecretContext,
): Promise<string> {
  if (secret.length === 0 || secret.length > SECRET_BYTES_MAX) {
    throw new WrappedSecretError(`a secret has 1 to ${SECRET_BYTES_MAX} bytes`)
  }
  const key = parsePublicKey(publicKeySpki)
  const header = { alg: keyAlgorithmOf(key), enc: CONTENT_ALGORITHM }
  return await new CompactEncrypt(secret)
    .setProtectedHeader({ ...header, [CONTEXT_MEMBER]: membersOf(context) })
    .encrypt(key)
}

/** @throws {WrappedSecretError} when it was made for another key or context, or changed since. */
export async function openSecret(
  jwe: string,
  privateKeyPem: string,
  context: SecretContext,
): Promise<Uint8Array> {
  const what = `version ${context.version} of ${context.name}`
  const key = parsePrivateKey(privateKeyPem)
  let opened: Awaited<ReturnType<typeof decrypt>>
  try {
    opened = await decrypt(jwe, key)
  } catch (error) {
    throw new WrappedSecretError(`cannot decrypt ${what} with the key of ${context.nodeId}`, {
      cause: error,
    })
  }
  const found = opened.protectedHeader[CONTEXT_MEMBER]
  if (canonicalJson(found) === canonicalJson(membersOf(context))) return opened.plaintext
  throw new WrappedSecretError(`${what} was encrypted for another purpose`)
}

/**
 * The algorithms follow from the recipient's key and never from the text, so that a forged header
 * can select nothing.
 */
async function decrypt(jwe: string, key: KeyObject): ReturnType<typeof compactDecrypt> {
  if (jwe.length > WRAPPED_CHARACTERS_MAX) throw new RangeError('too long')
  // Compressed content would have another size than the bounded text that it comes from.
  if (decodeProtectedHeader(jwe).zip !== undefined) throw new RangeError('compressed')
  return await compactDecrypt(jwe, key, {
    keyManagementAlgorithms: [keyAlgorithmOf(key)],
    contentEncryptionAlgorithms: [CONTENT_ALGORITHM],
  })
}

function keyAlgorithmOf({ asymmetricKeyType }: KeyObject): string {
  return asymmetricKeyType === 'rsa' ? 'RSA-OAEP-256' : 'ECDH-ES+A256KW'
}

function membersOf({ clusterId, name, version, nodeId }: SecretContext): {
  readonly [member: string]: string | number
} {
  return { clusterId, name, nodeId, version }
}
