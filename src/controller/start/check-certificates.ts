import { existsSync, readFileSync } from 'node:fs'

import type { ControllerConfig } from '../../config/controller/options.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkChain,
  checkKeyMatches,
  checkValidityTime,
  leafControllerId,
  parseCertificates,
} from '../../pki/certificate.ts'
import { checkControllerUsage, checkEndsAtRoot } from '../../pki/verify/controller-leaf.ts'
import { readSecretFile } from '../../pki/key-file.ts'
import { missingHosts } from '../../pki/authority/renewal.ts'
import { readServerCertificate } from '../../pki/verify/server-certificate.ts'
import { sentenceOf } from '../failure.ts'
import type { Report } from './check-report.ts'
import { errorCode } from '../../lib/error-code.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** Left to live at which a certificate is warned about at every start. */
export const EXPIRY_WARNING_MS = 30 * DAY_MS

const EXPIRED_REMEDY =
  "correct the clock, or renew the certificate: 'flotilla pki renew --member-cert' on a running member, or 'pki renew --root-key' here if none runs; one of your own PKI is renewed by its issuer, for the same key"

/** What a controller proves itself with, read and checked. */
export interface Credentials {
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
  /**
   * That providers of the keys of JWT signers are verified against, beside those of the system; ''
   * without any.
   */
  readonly signerCaPem: string
  readonly chain: readonly [Certificate, ...Certificate[]]
}

/** @returns null when there are faults in it; each is in the report, with its remedy. */
export function readCredentials(
  config: ControllerConfig,
  nowMs: number,
  report: Report,
): Credentials | null {
  const { cert, key, ca } = config.identity
  const faultsBefore = report.faults.length
  const chain = readCertificates(cert, 'identity.cert', undefined, report)
  const anchors = readCertificates(ca, 'identity.ca', BUNDLE_CERTIFICATES_MAX, report)
  const privateKeyPem = readSecret(key, 'identity.key', report)
  const { signerCa } = config.api
  const ofSigners =
    signerCa === null
      ? []
      : readCertificates(signerCa, 'api.signerCa', BUNDLE_CERTIFICATES_MAX, report)
  const before = report.faults.length
  if (chain !== null) checkLeaf(config, chain, nowMs, report)
  if (chain !== null && anchors !== null && before === report.faults.length) {
    const remedy = `add the issuing CA to identity.ca, or the intermediates to identity.cert`
    report.attempt(`identity.cert: ${cert}: `, remedy, () => {
      checkChain(chain, anchors, nowMs)
      checkEndsAtRoot(chain, anchors, nowMs)
    })
  }
  if (chain !== null && privateKeyPem !== null) {
    const remedy = `name the private key of ${cert}`
    report.attempt(`identity.key: ${key}: `, remedy, () => checkKeyMatches(chain[0], privateKeyPem))
  }
  if (report.faults.length > faultsBefore || chain === null || anchors === null) return null
  if (privateKeyPem === null) return null
  const pemOf = (certificates: readonly Certificate[]): string =>
    certificates.map(({ pem }) => pem).join('')
  return {
    certificatePem: pemOf(chain),
    privateKeyPem,
    caPem: pemOf(anchors),
    signerCaPem: pemOf(ofSigners ?? []),
    chain,
  }
}

/**
 * None of them keeps a controller from starting: its peers need it, and clients that ask for other
 * names are served all the same.
 */
export function checkServerCertificates(
  { serverCertificates }: ControllerConfig,
  nowMs: number,
  report: Report,
): void {
  for (const [at, { cert, key }] of serverCertificates.entries()) {
    const name = `serverCertificates[${at}]`
    try {
      readServerCertificate({ cert, key }, nowMs)
    } catch (error) {
      report.warnings.push(
        `${name}: ${sentenceOf(error)}; until it is corrected, its names get the certificate of the controller`,
      )
    }
  }
}

/**
 * Whoever has it can make certificates for anybody, and a formed cluster has its own sealed copy.
 */
export function checkSignerKey({ identity: { signer } }: ControllerConfig, report: Report): void {
  if (signer.key === null || !existsSync(signer.key)) return
  report.warnings.push(
    `identity.signer.key: ${signer.key} is no longer needed once the cluster exists; keep it offline`,
  )
}

function readCertificates(
  path: string,
  key: string,
  certificatesMax: number | undefined,
  report: Report,
): [Certificate, ...Certificate[]] | null {
  const text = report.attempt(`${key}: ${path} `, 'name a PEM file that this user can read', () =>
    readOperatorFile(path),
  )
  if (text === null) return null
  return report.attempt(`${key}: ${path}: `, 'name a PEM file with certificates', () =>
    parseCertificates(text, certificatesMax === undefined ? {} : { certificatesMax }),
  )
}

function readSecret(path: string, key: string, report: Report): string | null {
  try {
    const { text, warning } = readSecretFile(path)
    if (warning !== null) report.warnings.push(`${key}: ${warning}`)
    return text
  } catch (error) {
    report.faults.push(`${key}: ${sentenceOf(error)}`)
    return null
  }
}

function checkLeaf(
  config: ControllerConfig,
  [leaf]: readonly [Certificate, ...Certificate[]],
  nowMs: number,
  report: Report,
): void {
  const subject = `identity.cert: ${config.identity.cert}: `
  report.attempt(subject, EXPIRED_REMEDY, () => checkValidityTime(leaf, nowMs))
  report.attempt(
    subject,
    `issue one with spiffe://${config.trustDomain}/controller/${config.id} as its only URI name, or correct id or trustDomain`,
    () => {
      const id = leafControllerId(leaf, config.trustDomain)
      if (id === config.id) return
      throw new CertificateError(
        'wrong-identity',
        `it belongs to controller ${id}, but id is ${config.id}`,
      )
    },
  )
  report.attempt(
    subject,
    'issue one with the extended key usages serverAuth and clientAuth and the key usage digitalSignature',
    () => checkControllerUsage(leaf),
  )
  const leftMs = leaf.notAfterMs - nowMs
  if (leftMs > 0 && leftMs < EXPIRY_WARNING_MS) {
    const days = Math.floor(leftMs / DAY_MS)
    report.warnings.push(
      `${subject}expires in ${days} days; certificates issued by the cluster renew themselves while the controller runs, any other must be renewed by its issuer, for the same key`,
    )
  }
  for (const [at, { advertise }] of config.web.entries()) {
    const host = parseHostPort(advertise)?.host ?? ''
    if (missingHosts(leaf, [host]).length > 0) {
      report.warnings.push(
        `${subject}lacks ${host} of web[${at}].advertise, so clients would reject it; a certificate issued by the cluster is renewed once the controller runs, for any other issue one with that name, or advertise a host that it has`,
      )
    }
  }
}

/** @throws with words that follow the path. */
export function readOperatorFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT') throw new Error('does not exist', { cause: error })
    if (code === 'EACCES') throw new Error('may not be read by this user', { cause: error })
    throw new Error(`cannot be read (${sentenceOf(error)})`, { cause: error })
  }
}
