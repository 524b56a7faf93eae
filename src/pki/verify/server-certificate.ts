import {
  type Certificate,
  CertificateError,
  checkKeyMatches,
  checkValidityTime,
} from '../certificate.ts'
import { withPathInError, certificatesPem, readCertificates } from './identity-files.ts'
import { readSecretFile } from '../secret-file.ts'
import { missingPurposes } from './key-purposes.ts'

/**
 * Absolute paths of a certificate and its key. A listener presents the certificate if the client
 * requests a name that the certificate contains.
 */
export interface ServerCertificatePaths {
  readonly cert: string
  readonly key: string
}

export interface ServerCertificateSet {
  readonly chain: readonly [Certificate, ...Certificate[]]
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/**
 * Reads a listener's certificate from any authority; clients decide whether they trust it.
 * @throws {CertificateError | SecretFileError} the first problem; the message names the file.
 */
export function readServerCertificate(
  { cert, key }: ServerCertificatePaths,
  nowMs: number,
): ServerCertificateSet {
  const chain = readCertificates(cert)
  const privateKeyPem = readSecretFile(key).text
  withPathInError(cert, () => {
    checkValidityTime(chain[0], nowMs)
    checkServerLeaf(chain[0], chain.length)
  })
  withPathInError(key, () => checkKeyMatches(chain[0], privateKeyPem))
  return { chain, certificatePem: certificatesPem(chain), privateKeyPem }
}

/**
 * Whether a listener can use a certificate; clients decide whether they trust it.
 * @returns the reason why the listener cannot use it, which completes "it …"; null if it can.
 */
export function serverCertificateFault(
  chain: readonly [Certificate, ...Certificate[]],
  privateKeyPem: string,
  nowMs: number,
): string | null {
  try {
    checkValidityTime(chain[0], nowMs)
    checkServerLeaf(chain[0], chain.length)
    checkKeyMatches(chain[0], privateKeyPem)
    return null
  } catch (error) {
    if (error instanceof CertificateError) return error.message
    throw error
  }
}

function checkServerLeaf(leaf: Certificate, certificates: number): void {
  if (leaf.isAuthority) {
    const remedy =
      certificates === 1
        ? "and the only one in the file; have a CA issue a server certificate, or create a self-signed one that is no CA certificate (openssl req -x509 -addext 'basicConstraints=critical,CA:FALSE')"
        : 'and the first in the file; put the server certificate first'
    throw new CertificateError('wrong-identity', `it is a CA certificate ${remedy}`)
  }
  if (leaf.dnsNames.length + leaf.ipAddresses.length === 0) {
    throw new CertificateError('wrong-identity', 'it names no host as alternative name')
  }
  if (missingPurposes(leaf, ['serverAuth']).length > 0) {
    throw new CertificateError('wrong-usage', 'its extended key usage lacks serverAuth')
  }
}
