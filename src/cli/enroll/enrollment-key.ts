import { hash } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'

import { parsePrivateKey } from '../../pki/certificate.ts'
import { generatePrivateKeyPem, type KeyKind } from '../../pki/authority/certificate-request.ts'
import { readSecretFile, writeNewFile } from '../../pki/secret-file.ts'
import { EnrollmentFault } from './enrollment-fault.ts'

/** Suffix of the temporary key file, which exists until the enrollment is complete. */
const ENROLLING_SUFFIX = '.enrolling'

/**
 * The private key of an enrollment. It is written to disk before the token is used: the controller
 * issues the same certificate again for the same token and key, so a later crash loses nothing.
 */
export interface EnrollmentKey {
  readonly privateKeyPem: string
  readonly path: string
  /** True if the key existed before this run. */
  readonly isFound: boolean
  /**
   * Deletes the key file if this run created it; called when the controller has refused the token.
   */
  readonly forget: () => void
}

/**
 * Uses or creates a key in a separate file that remains after the enrollment. An existing key comes
 * from an earlier run, or from the caller.
 */
export function loadOrCreateKeyFile(path: string, kind: KeyKind): EnrollmentKey {
  if (existsSync(path)) {
    const { text } = readSecretFile(path)
    parsePrivateKey(text)
    return { privateKeyPem: text, path, isFound: true, forget: () => undefined }
  }
  const privateKeyPem = generatePrivateKeyPem(kind)
  writeNewFile(path, privateKeyPem, 0o600)
  return { privateKeyPem, path, isFound: false, forget: () => rmSync(path, { force: true }) }
}

/**
 * Uses or creates a temporary key file. The caller must delete it once the file with the final copy
 * of the key is written.
 * @param out path of that file; the temporary file is next to it.
 * @throws {EnrollmentFault} when the file already exists and belongs to another token, or to no
 * enrollment.
 */
export function loadOrCreateTemporaryKey(
  out: string,
  secret: string,
  kind: KeyKind | (() => string),
): EnrollmentKey {
  const path = `${out}${ENROLLING_SUFFIX}`
  const digest = hash('sha256', secret)
  if (existsSync(path)) {
    const { token, key } = enrollingIn(path)
    if (token !== digest) {
      throw new EnrollmentFault(
        `${path} holds the key of an interrupted enrollment with another token; finish that one first, remove the file, or name another file with --out`,
      )
    }
    parsePrivateKey(key)
    return { privateKeyPem: key, path, isFound: true, forget: () => undefined }
  }
  const privateKeyPem = typeof kind === 'function' ? kind() : generatePrivateKeyPem(kind)
  writeNewFile(path, `${JSON.stringify({ token: digest, key: privateKeyPem })}\n`, 0o600)
  return { privateKeyPem, path, isFound: false, forget: () => rmSync(path, { force: true }) }
}

function enrollingIn(path: string): { readonly token: string; readonly key: string } {
  try {
    const { token, key } = JSON.parse(readSecretFile(path).text) as Record<string, unknown>
    if (typeof token === 'string' && typeof key === 'string') return { token, key }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new EnrollmentFault(
    `${path} does not belong to an interrupted enrollment; move it away, or name another file with --out`,
  )
}
