import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { parseRecipient } from '../../backup/encryption.ts'
import type { ControllerConfig } from '../../config/options.ts'
import { parseHostPort } from '../../lib/names.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  CertificateError,
  checkChain,
  checkKeyMatches,
  checkValidityTime,
  leafControllerId,
  parseCertificates,
} from '../../pki/certificate.ts'
import type { Certificate } from '../../pki/certificate.ts'
import { readSecretFile } from '../../pki/key-file.ts'
import { missingHosts } from '../../pki/renewal.ts'
import { sentenceOf } from '../failure.ts'
import { Report, attempt } from './check-report.ts'
import { checkLogFile, checkDataFolder, codeOf } from './check-folders.ts'
import { checkListeners } from './check-listeners.ts'

const DAY_MS = 24 * 60 * 60 * 1000
/** Left to live at which a certificate is warned about at every start. */
export const EXPIRY_WARNING_MS = 30 * DAY_MS

const EXPIRED_REMEDY =
  "correct the clock, or renew the certificate: 'flotilla pki renew --member-cert' on a running member, or 'pki renew --root-key' here if none runs"

/** What a controller proves itself with, read and checked. */
export interface Credentials {
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
  /** That providers of the keys of JWT signers are verified against, beside those of the system; '' without any. */
  readonly signerCaPem: string
  readonly chain: readonly [Certificate, ...Certificate[]]
}

export interface Preflight {
  /** A sentence each, remedy included; empty when the controller can start. */
  readonly faults: readonly string[]
  /** What will need attention, without standing in the way. */
  readonly warnings: readonly string[]
  /** null when there are faults in it. */
  readonly credentials: Credentials | null
}

/** Looks at all that a start needs and names everything that is wrong with it; leaves nothing behind. */
export async function preflight(config: ControllerConfig, nowMs: number): Promise<Preflight> {
  const report = new Report()
  const credentials = readCredentials(config, nowMs, report)
  checkSignerKey(config, report)
  checkLogFile(config, report)
  await checkDataFolder(config, report)
  await checkListeners(config, report)
  checkBackups(config, report)
  return { faults: report.faults, warnings: report.warnings, credentials }
}

function readCredentials(
  config: ControllerConfig,
  nowMs: number,
  report: Report,
): Credentials | null {
  const { cert, key, ca } = config.identity
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
    report.attempt(`identity.cert: ${cert}: `, remedy, () => checkChain(chain, anchors, nowMs))
  }
  if (chain !== null && privateKeyPem !== null) {
    const remedy = `name the private key of ${cert}`
    report.attempt(`identity.key: ${key}: `, remedy, () => checkKeyMatches(chain[0], privateKeyPem))
  }
  if (report.faults.length > 0 || chain === null || anchors === null) return null
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

function readCertificates(
  path: string,
  key: string,
  certificatesMax: number | undefined,
  report: Report,
): [Certificate, ...Certificate[]] | null {
  const text = report.attempt(`${key}: ${path} `, 'name a PEM file that this user can read', () =>
    readText(path),
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

/** Whoever has it can make certificates for anybody, and a formed cluster has its own sealed copy. */
function checkSignerKey({ identity: { signer } }: ControllerConfig, report: Report): void {
  if (signer.key === null || !existsSync(signer.key)) return
  report.warnings.push(
    `identity.signer.key: ${signer.key} is no longer needed once the cluster exists; keep it offline`,
  )
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') throw new Error('does not exist', { cause: error })
    if (code === 'EACCES') throw new Error('may not be read by this user', { cause: error })
    throw new Error(`cannot be read (${sentenceOf(error)})`, { cause: error })
  }
}

/** No backup is a reason to keep a cluster from starting: what is wrong is told here, and by an alarm while it runs. */
function checkBackups({ backup }: ControllerConfig, report: Report): void {
  const { folder, recipient, hook } = backup
  if (folder === null || recipient === null) return
  attempt(report, `backup.recipient: ${recipient}: `, () => {
    parseRecipient(readText(recipient))
  })
  if (existsSync(folder)) {
    attempt(report, `backup.folder: ${folder}: `, () => accessSync(folder, constants.W_OK))
  }
  const [program] = hook
  if (program === undefined) return
  attempt(report, `backup.hook: ${program}: `, () => accessSync(program, constants.X_OK))
}
