import type { KeyObject } from 'node:crypto'

import { compactDecrypt, CompactEncrypt, decodeProtectedHeader } from 'jose'

import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { parsePrivateKey } from '../certificate.ts'
import { parsePublicKey } from '../public-key.ts'

/** Maximum bytes of one secret; the largest secret is a private key in PEM. */
export const SECRET_BYTES_MAX = 16 * 1024
/** Maximum characters of one wrapped secret. */
export const WRAPPED_CHARACTERS_MAX = 32 * 1024

/**
 * Cluster, name, version and recipient of a wrapped secret. They are authenticated together with
 * the secret, so that one wrapped secret cannot be used instead of another.
 */
interface SecretContext {
  readonly clusterId: string
  readonly name: string
  readonly version: number
  readonly nodeId: string
}

/** The message is one sentence that never contains a part of the secret. */
export class WrappedSecretError extends Error {
  override readonly name = 'WrappedSecretError'
}

const CONTEXT_MEMBER = 'flotilla'
const CONTENT_ALGORITHM = 'A256GCM'

/**
 * Encrypts a secret for one private key: compact JWE, ECDH-ES+A256KW for EC keys, RSA-OAEP-256 for
 * RSA keys, A256GCM. The result does not prove who created it, because anyone can encrypt for a
 * public key: trust it only if it comes from the replicated state.
 * @throws {CertificateError} for an invalid or unsupported key; {WrappedSecretError} for a secret
 * of invalid size.
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

/**
 * @throws {WrappedSecretError} if the secret was wrapped for another key or context, or was
 * modified; {CertificateError} for an invalid private key.
 */
export async function unwrapSecret(
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
 * Decrypts with the algorithms that fit the recipient's key, so that a forged header cannot select
 * another algorithm.
 */
async function decrypt(jwe: string, key: KeyObject): ReturnType<typeof compactDecrypt> {
  if (jwe.length > WRAPPED_CHARACTERS_MAX) throw new RangeError('too long')
  // Rejects compression, because the decompressed content could exceed the size limit.
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
