import { existsSync, readFileSync } from 'node:fs'

import type { ControllerConfig } from '../../config/controller/options.ts'
import { errorMessage, readFaultText } from '../../lib/error-code.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import { BUNDLE_CERTIFICATES_MAX, type Certificate } from '../../pki/certificate.ts'
import {
  type IdentityFault,
  validateIdentityFiles,
  certificatesPem,
  readCertificates,
} from '../../pki/verify/identity-files.ts'
import { missingHosts } from '../../pki/authority/renewal.ts'
import { readServerCertificate } from '../../pki/verify/server-certificate.ts'
import type { StartCheckReport } from './check-report.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** Remaining lifetime below which each start logs an expiry warning. */
const EXPIRY_WARNING_MS = 30 * DAY_MS

const EXPIRED_REMEDY =
  "correct the clock, or renew the certificate: 'flotilla pki renew --member-cert' on a running member, or 'pki renew --root-key' here if none runs; one of your own PKI is renewed by its issuer, for the same key"

/** A controller's verified credentials. */
export interface Credentials {
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
  /**
   * CA certificates for connections to the JWKS endpoints of JWT signers, in addition to the
   * system's CA certificates; '' if none.
   */
  readonly signerCaPem: string
  readonly chain: readonly [Certificate, ...Certificate[]]
}

const remedies: Readonly<Record<IdentityFault['about'], string>> = {
  file: 'name a PEM file that this user can read',
  time: EXPIRED_REMEDY,
  owner:
    'issue one with spiffe://TRUST_DOMAIN/controller/ID as its only URI name, or correct id or trustDomain',
  usage:
    'issue one with the extended key usages serverAuth and clientAuth and the key usage digitalSignature',
  chain: 'add the issuing CA to identity.ca, or the intermediates to identity.cert',
  key: 'name the private key of identity.cert',
  kind: 'make one of an allowed kind, and have a certificate issued for it',
  tls: 'issue one that TLS accepts',
}

/**
 * Reads and verifies the controller's credentials.
 * @returns null for invalid credentials; the report then contains each fault with its remedy.
 */
export function readCredentials(
  config: ControllerConfig,
  nowMs: number,
  report: StartCheckReport,
): Credentials | null {
  const { id, trustDomain, identity } = config
  const owner = { id, trustDomain, publicKeySha256: null }
  const { set, faults, warning } = validateIdentityFiles(identity, owner, nowMs)
  for (const { file, about, error } of faults) {
    const remedy = remedies[about].replace('TRUST_DOMAIN', trustDomain).replace('ID', id)
    // A message about reading a key file gets no remedy, because it already contains one.
    const isWhole = file === 'key' && about === 'file'
    const sentence = `identity.${file}: ${errorMessage(error)}`
    report.faults.push(isWhole ? sentence : `${sentence}; ${remedy}`)
  }
  if (warning !== null) report.warnings.push(`identity.key: ${warning}`)
  const { signerCa } = config.api
  const ofSigners = report.attempt('api.signerCa: ', 'name a PEM file with certificates', () =>
    signerCa === null ? [] : readCertificates(signerCa, BUNDLE_CERTIFICATES_MAX),
  )
  if (set === null || ofSigners === null) return null
  warnOfLeaf(config, set.chain[0], nowMs, report)
  const { chain, certificatePem, privateKeyPem, caPem } = set
  return { certificatePem, privateKeyPem, caPem, signerCaPem: certificatesPem(ofSigners), chain }
}

/**
 * Checks server certificates. Their faults never prevent the start: peers need this controller, and
 * it can still serve clients with other server names.
 */
export function checkServerCertificates(
  { serverCertificates }: ControllerConfig,
  nowMs: number,
  report: StartCheckReport,
): void {
  for (const [at, { cert, key }] of serverCertificates.entries()) {
    const name = `serverCertificates[${at}]`
    try {
      readServerCertificate({ cert, key }, nowMs)
    } catch (error) {
      report.warnings.push(
        `${name}: ${errorMessage(error)}; until it is corrected, its names get the certificate of the controller`,
      )
    }
  }
}

/**
 * Warns if the issuing key is still in a file. Anyone with the key can issue certificates for any
 * identity, and the controller does not need the file, because the cluster stores an encrypted
 * copy.
 */
export function checkSignerKey(
  { identity: { signer } }: ControllerConfig,
  report: StartCheckReport,
): void {
  if (signer.key === null || !existsSync(signer.key)) return
  report.warnings.push(
    `identity.signer.key: ${signer.key} is no longer needed once the cluster exists; keep it offline`,
  )
}

function warnOfLeaf(
  config: ControllerConfig,
  leaf: Certificate,
  nowMs: number,
  report: StartCheckReport,
): void {
  const subject = `identity.cert: ${config.identity.cert}: `
  const leftMs = leaf.notAfterMs - nowMs
  if (leftMs > 0 && leftMs < EXPIRY_WARNING_MS) {
    const days = Math.floor(leftMs / DAY_MS)
    report.warnings.push(
      `${subject}expires in ${days} days; certificates issued by the cluster renew themselves while the controller runs, any other must be renewed by its issuer, for the same key`,
    )
  }
  for (const [at, { advertise, names }] of config.web.entries()) {
    const host = parseHostPort(advertise)?.host ?? ''
    const lacks = (missing: string, key: string): string =>
      `${subject}lacks ${missing} of web[${at}].${key}, so clients would reject it; a certificate issued by the cluster is renewed once the controller runs, for any other issue one with that name`
    if (missingHosts(leaf, [host]).length > 0) {
      report.warnings.push(`${lacks(host, 'advertise')}, or advertise a host that it has`)
    }
    const missing = missingHosts(leaf, names)
    if (missing.length > 0) report.warnings.push(lacks(missing.join(', '), 'names'))
  }
}

/**
 * Reads a file that the operator configured.
 * @throws an error whose message completes a sentence that starts with the file's path.
 */
export function readOperatorFile(path: string): string {
  try {
    return decodeText(readFileSync(path))
  } catch (error) {
    throw new Error(readFaultText(error), { cause: error })
  }
}
