import { readFileSync, statSync } from 'node:fs'

import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkChain,
  checkKeyMatches,
  checkValidityTime,
  leafControllerId,
  parseCertificates,
  PEM_BYTES_MAX,
} from '../certificate.ts'
import { checkControllerUsage } from './controller-leaf.ts'
import { readSecretFile } from '../key-file.ts'
import { errorMessage } from '../../lib/error-code.ts'

/** Absolute paths of what a controller proves itself with. */
export interface IdentityPaths {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

/** Read and found to belong together. */
export interface IdentitySet {
  readonly chain: readonly [Certificate, ...Certificate[]]
  readonly anchors: readonly Certificate[]
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
}

export interface IdentityOwner {
  readonly id: string
  readonly trustDomain: string
  /** By which the other members know it: SHA-256 of the SubjectPublicKeyInfo in DER. */
  readonly publicKeySha256: Uint8Array
}

/**
 * Reads the files of a running controller again.
 * @throws {CertificateError | SecretFileError} the first thing that is wrong, naming the file.
 */
export function readIdentitySet(
  paths: IdentityPaths,
  owner: IdentityOwner,
  nowMs: number,
): IdentitySet {
  const chain = readCertificates(paths.cert)
  const anchors = readCertificates(paths.ca, BUNDLE_CERTIFICATES_MAX)
  const privateKeyPem = readSecretFile(paths.key).text
  naming(paths.cert, () => {
    checkValidityTime(chain[0], nowMs)
    checkOwner(chain[0], owner)
    checkControllerUsage(chain[0])
    checkChain(chain, anchors, nowMs)
  })
  naming(paths.key, () => checkKeyMatches(chain[0], privateKeyPem))
  return { chain, anchors, certificatePem: pemOf(chain), privateKeyPem, caPem: pemOf(anchors) }
}

function checkOwner(leaf: Certificate, owner: IdentityOwner): void {
  const id = leafControllerId(leaf, owner.trustDomain)
  if (id !== owner.id) {
    throw new CertificateError('wrong-identity', `it belongs to ${id}, not to ${owner.id}`)
  }
  if (Buffer.compare(leaf.publicKeySha256, owner.publicKeySha256) === 0) return
  throw new CertificateError(
    'key-mismatch',
    `it is for another key than the one in the member record of ${owner.id}, so peers would refuse it; have it issued for the same key, or replace this member`,
  )
}

/** @throws {CertificateError} naming the file. */
export function readCertificates(
  path: string,
  certificatesMax?: number,
): [Certificate, ...Certificate[]] {
  return naming(path, () => {
    if (statSync(path).size > PEM_BYTES_MAX) {
      throw new CertificateError('unreadable', `it is larger than ${PEM_BYTES_MAX} bytes`)
    }
    const text = readFileSync(path, 'utf8')
    return parseCertificates(text, certificatesMax === undefined ? {} : { certificatesMax })
  })
}

export function pemOf(certificates: readonly Certificate[]): string {
  return certificates.map(({ pem }) => pem).join('')
}

/**
 * Differs as soon as one of the files was written or exchanged; a missing one counts as a state of
 * its own. Nothing is read but the entries of the folders.
 */
export function fileStamp(paths: { readonly [name in 'cert' | 'key' | 'ca']?: string }): string {
  const { cert, key, ca } = paths
  return [cert, key, ca].map((path) => (path === undefined ? '' : stampOf(path))).join(' ')
}

function stampOf(path: string): string {
  try {
    const { mtimeNs, ctimeNs, size, ino } = statSync(path, { bigint: true })
    return `${mtimeNs}:${ctimeNs}:${size}:${ino}`
  } catch {
    return 'none'
  }
}

/** Runs a step; a fault in it names the file. @throws {CertificateError} */
export function naming<T>(path: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    const fault = error instanceof CertificateError ? error.fault : 'unreadable'
    throw new CertificateError(fault, `${path}: ${faultOf(error)}`, error)
  }
}

function faultOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'ENOENT') return 'file not found'
  if (code === 'EACCES') return 'the user running this program has no permission to read it'
  return errorMessage(error)
}
