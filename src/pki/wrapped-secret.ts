import { canonicalJson } from '../lib/canonical-json.ts'
import { parsePrivateKey } from './certificate.ts'
import { decryptCompact, encryptCompact, JweError } from './jwe.ts'
import { parsePublicKey } from './public-key.ts'

/** Of one secret; a private key in PEM is the largest. */
export const SECRET_BYTES_MAX = 16 * 1024

/** What a wrapped secret is, and for whom. Part of what is authenticated: one can not be passed off as another. */
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

/**
 * A secret that the holder of one private key can open: compact JWE, ECDH-ES+A256KW for EC keys, RSA-OAEP-256 for RSA keys,
 * A256GCM. It hides and binds; it does not tell who made it (anyone can wrap for a public key), so it is to be
 * believed only where it comes out of the replicated state.
 * @throws {CertificateError} for a key that is none or not allowed.
 */
export function wrapSecret(
  secret: Uint8Array,
  publicKeySpki: Uint8Array,
  context: SecretContext,
): Promise<string> {
  return settled(() => {
    if (secret.length === 0 || secret.length > SECRET_BYTES_MAX) {
      throw new WrappedSecretError(`a secret has 1 to ${SECRET_BYTES_MAX} bytes`)
    }
    return encryptCompact(secret, parsePublicKey(publicKeySpki), {
      [CONTEXT_MEMBER]: membersOf(context),
    })
  })
}

/** @throws {WrappedSecretError} when it was made for another key or context, or changed since. */
export function openSecret(
  jwe: string,
  privateKeyPem: string,
  context: SecretContext,
): Promise<Uint8Array> {
  return settled(() => {
    const what = `version ${context.version} of ${context.name}`
    try {
      const { header, plaintext } = decryptCompact(jwe, parsePrivateKey(privateKeyPem))
      if (canonicalJson(header[CONTEXT_MEMBER]) === canonicalJson(membersOf(context))) {
        return plaintext
      }
    } catch (error) {
      if (!(error instanceof JweError)) throw error
      throw new WrappedSecretError(`${what} can not be opened with the key of ${context.nodeId}`, {
        cause: error,
      })
    }
    throw new WrappedSecretError(`what stands for ${what} was wrapped for something else`)
  })
}

function membersOf({ clusterId, name, version, nodeId }: SecretContext): {
  readonly [member: string]: string | number
} {
  return { clusterId, name, nodeId, version }
}

/** Runs at once; what it throws becomes a rejection. */
function settled<T>(run: () => T): Promise<T> {
  return new Promise((resolve) => {
    resolve(run())
  })
}
