import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkCertificateChain,
  checkKeyMatches,
  checkValidityTime,
  leafControllerId,
  parseCertificates,
  PEM_BYTES_MAX,
} from '../certificate.ts'
import { checkControllerUsage, checkEndsAtRoot } from './controller-leaf.ts'
import { readSecretFile } from '../secret-file.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { parsePublicKey } from '../public-key.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

/** Absolute paths of a controller's identity files. */
export interface IdentityPaths {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

/** Contents of identity files that are valid and match each other. */
export interface IdentityFileContents {
  readonly chain: readonly [Certificate, ...Certificate[]]
  readonly anchors: readonly Certificate[]
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
}

export interface IdentityOwner {
  readonly id: string
  readonly trustDomain: string
  /**
   * Pinned key of this controller: SHA-256 of the SubjectPublicKeyInfo in DER; null while no member
   * has a record of the controller.
   */
  readonly publicKeySha256: Uint8Array | null
}

export interface IdentityFault {
  readonly file: keyof IdentityPaths
  readonly about: 'file' | 'time' | 'owner' | 'usage' | 'chain' | 'key' | 'kind' | 'tls'
  /** The error's message is one sentence that names the file. */
  readonly error: unknown
}

interface ValidatedIdentity {
  /** Null when there is at least one fault. */
  readonly set: IdentityFileContents | null
  readonly faults: readonly IdentityFault[]
  /** A warning about the key file, which is still usable. */
  readonly warning: string | null
}

/**
 * Validates a controller's identity files: before a start, at the start, and when files are
 * replaced at run time.
 */
export function validateIdentityFiles(
  paths: IdentityPaths,
  owner: IdentityOwner,
  nowMs: number,
): ValidatedIdentity {
  const faults: IdentityFault[] = []
  const step = <T>(file: IdentityFault['file'], about: IdentityFault['about'], run: () => T) => {
    try {
      return about === 'file' ? run() : withPathInError(paths[file], run)
    } catch (error) {
      faults.push({ file, about, error })
      return null
    }
  }
  const chain = step('cert', 'file', () => readCertificates(paths.cert))
  const anchors = step('ca', 'file', () => readCertificates(paths.ca, BUNDLE_CERTIFICATES_MAX))
  const key = step('key', 'file', () => readSecretFile(paths.key))
  const before = faults.length
  if (chain !== null) {
    const [leaf] = chain
    step('cert', 'time', () => checkValidityTime(leaf, nowMs))
    // @guard certificate-files-of-a-stranger--spiffe
    step('cert', 'owner', () => checkOwner(leaf, owner))
    // @guard certificate-files-of-a-stranger--usage
    step('cert', 'usage', () => checkControllerUsage(leaf))
    if (anchors !== null && faults.length === before) {
      step('cert', 'chain', () => {
        checkCertificateChain(chain, anchors, nowMs)
        checkEndsAtRoot(chain, anchors, nowMs)
      })
    }
    if (key !== null) step('key', 'key', () => checkKeyMatches(leaf, key.text))
    // The key must be of a supported kind, because cluster secrets are encrypted for it.
    step('key', 'kind', () =>
      parsePublicKey(leaf.native.publicKey.export({ type: 'spki', format: 'der' })),
    )
  }
  const warning = key?.warning ?? null
  if (chain === null || anchors === null || key === null || faults.length > 0) {
    return { set: null, faults, warning }
  }
  const set: IdentityFileContents = {
    chain,
    anchors,
    certificatePem: certificatesPem(chain),
    privateKeyPem: key.text,
    caPem: certificatesPem(anchors),
  }
  // Lets TLS load the files, because TLS has additional rules, for example for key lengths and
  // digests.
  const { certificatePem: cert, privateKeyPem, caPem: ca } = set
  step('cert', 'tls', () => createSecureContext({ cert, key: privateKeyPem, ca }))
  return { set: faults.length === 0 ? set : null, faults, warning }
}

/** @throws {CertificateError | SecretFileError} the first problem; the message names the file. */
export function readIdentitySet(
  paths: IdentityPaths,
  owner: IdentityOwner,
  nowMs: number,
): IdentityFileContents {
  const { set, faults } = validateIdentityFiles(paths, owner, nowMs)
  if (set !== null) return set
  throw faults[0]?.error
}

function checkOwner(leaf: Certificate, owner: IdentityOwner): void {
  const id = leafControllerId(leaf, owner.trustDomain)
  if (id !== owner.id) {
    throw new CertificateError(
      'wrong-identity',
      `it belongs to controller ${id}, not to ${owner.id}`,
    )
  }
  if (owner.publicKeySha256 === null) return
  if (Buffer.compare(leaf.publicKeySha256, owner.publicKeySha256) === 0) return
  throw new CertificateError(
    'key-mismatch',
    `it is for another key than the one in the member record of ${owner.id}, so peers would refuse it; have it issued for the same key, or replace this member`,
  )
}

/** @throws {CertificateError} with a message that names the file. */
export function readCertificates(
  path: string,
  certificatesMax?: number,
): [Certificate, ...Certificate[]] {
  return withPathInError(path, () => {
    if (statSync(path).size > PEM_BYTES_MAX) {
      throw new CertificateError('unreadable', `it is larger than ${PEM_BYTES_MAX} bytes`)
    }
    const text = decodeText(readFileSync(path))
    return parseCertificates(text, certificatesMax === undefined ? {} : { certificatesMax })
  })
}

export function certificatesPem(certificates: readonly Certificate[]): string {
  return certificates.map(({ pem }) => pem).join('')
}

/**
 * A string that changes when one of the files is created, written, replaced or removed. The string
 * consists of the files' metadata, so their content is not read.
 */
export function fileVersionKey(paths: {
  readonly [name in 'cert' | 'key' | 'ca']?: string
}): string {
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

/**
 * Runs a step; if it fails, adds the path to the error message.
 * @throws {CertificateError}
 */
export function withPathInError<T>(path: string, step: () => T): T {
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
