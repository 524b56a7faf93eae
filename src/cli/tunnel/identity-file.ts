import { dirname, resolve } from 'node:path'

import { readTextFile } from '../terminal/text-file.ts'
import { CommandFailure, EXIT_USAGE } from '../../controller/command-failure.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  checkKeyMatches,
  parseCertificates,
} from '../../pki/certificate.ts'
import { readSecretFile } from '../../pki/secret-file.ts'
import type { EnrolledIdentity } from '../enroll/identity-file.ts'

export const IDENTITY_FILE_BYTES_MAX = 1024 * 1024

/**
 * Reads an identity file from `flotilla identity enroll` or from OpenZiti's enrollment tools: an
 * address (`ztAPI`, or the list `ztAPIs`), and key, certificate and CA certificates, each as `pem:`
 * with the text or as the path of a file.
 * @throws {CommandFailure} exit 2.
 */
export function readIdentityFile(
  path: string,
): EnrolledIdentity & { readonly origins: readonly string[] } {
  const fail = (reason: string, cause?: unknown): CommandFailure =>
    new CommandFailure(
      EXIT_USAGE,
      `--identity ${path}: ${reason}; pass the file that 'flotilla identity enroll --out FILE' has written`,
      cause,
    )
  let text: string
  try {
    text = readSecretFile(path, IDENTITY_FILE_BYTES_MAX).text
  } catch (error) {
    throw new CommandFailure(EXIT_USAGE, `--identity: ${errorMessage(error)}`, error)
  }
  const file = parseJsonOrNull(text) as Readonly<Record<string, unknown>> | null
  if (typeof file !== 'object' || file === null) throw fail('it is no JSON object')
  const origins = originsIn(file)
  const [origin] = origins
  if (origin === undefined) throw fail('ztAPI is no https:// address')
  const id = (file['id'] ?? {}) as Readonly<Record<string, unknown>>
  const pem = (name: string): string => {
    try {
      return pemIn(id[name], path, name === 'key')
    } catch (error) {
      throw fail(`id.${name}: ${errorMessage(error)}`, error)
    }
  }
  const [privateKeyPem, certificatePem, caPem] = [pem('key'), pem('cert'), pem('ca')]
  try {
    const [leaf] = parseCertificates(certificatePem)
    if (leaf === undefined) throw new Error('it has no certificate')
    checkKeyMatches(leaf, privateKeyPem)
    parseCertificates(caPem, { certificatesMax: BUNDLE_CERTIFICATES_MAX })
  } catch (error) {
    throw fail(errorMessage(error), error)
  }
  return { origin, origins, privateKeyPem, certificatePem, caPem }
}

function originsIn(file: Readonly<Record<string, unknown>>): readonly string[] {
  const listed: readonly unknown[] = Array.isArray(file['ztAPIs']) ? file['ztAPIs'] : []
  const origins = [file['ztAPI'], ...listed].flatMap((text) => {
    const url = typeof text === 'string' ? URL.parse(text) : null
    return url?.protocol === 'https:' ? [url.origin] : []
  })
  return [...new Set(origins)]
}

/** @throws {Error} whose message is a clause to be used within a sentence. */
function pemIn(value: unknown, identityPath: string, isSecret: boolean): string {
  if (typeof value !== 'string' || value === '') throw new Error('it is missing')
  if (value.startsWith('pem:')) return value.slice('pem:'.length)
  const path = resolveIdentityPath(identityPath, value)
  return isSecret ? readSecretFile(path).text : readTextFile(path)
}

/** The path from an identity file; a relative path starts at the folder of the identity file. */
export function resolveIdentityPath(identityPath: string, value: string): string {
  return resolve(dirname(identityPath), value.replace(/^file:\/\//, ''))
}
