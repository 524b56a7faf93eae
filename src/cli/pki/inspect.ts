import { existsSync } from 'node:fs'

import type { ControllerConfig } from '../../config/controller/options.ts'
import { systemClock } from '../../lib/clock.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  parseCertificates,
} from '../../pki/certificate.ts'
import { readCertificates } from '../../pki/verify/identity-files.ts'
import {
  inspectChain,
  type InspectedCertificate,
  inspectCertificate,
} from '../../pki/authority/inspection.ts'
import { SecretFileError } from '../../pki/secret-file.ts'
import { readSigningAuthority } from '../../pki/authority/signing-authority.ts'
import type { ActiveCertificates } from '../../api/cluster/pki-control.ts'
import { AdminSocketError, sendToAdminSocket } from '../client/admin-socket.ts'
import { loadConfigOrFail } from '../client/connection.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'
import { formatTable, printJson, printLine } from '../terminal/output.ts'
import { isoTime } from '../../lib/text/format-time.ts'

interface InspectOptions {
  readonly config?: string
  readonly ca?: string
  readonly json?: boolean
}

/**
 * A certificate and its source: the path of a file, or `cluster` for a certificate that a running
 * controller reports.
 */
interface Found extends InspectedCertificate {
  readonly file: string
}

/**
 * @throws {CommandFailure} exit 1 if one of the certificates has expired, is not valid yet, or is
 * not trusted; all certificates are printed first.
 */
export async function printCertificates(
  files: readonly string[],
  options: InspectOptions,
): Promise<void> {
  if (files.length === 0 && options.config === undefined) {
    throw new CommandFailure(
      EXIT_USAGE,
      'name PEM files, or --config FILE for those of a controller',
    )
  }
  const nowMs = systemClock.nowMs()
  const config = options.config === undefined ? null : loadConfigOrFail(options.config)
  const found = inspectFiles(files, options.ca, config, nowMs)
  const running = config === null ? null : await askRunning(config)
  if (config !== null && running !== null) {
    found.push(...inspectRunning(running, config, found, nowMs))
  }
  const faults = found.flatMap(faultsOf)
  if (options.json === true) print(found, faults, running)
  else show(found, running)
  if (faults.length > 0) throw new CommandFailure(EXIT_FAILED, faults.join('\n'))
}

function inspectFiles(
  files: readonly string[],
  ca: string | undefined,
  config: ControllerConfig | null,
  nowMs: number,
): Found[] {
  try {
    const chains = new Map(files.map((file) => [file, read(file)]))
    const own = config === null ? [] : read(config.identity.ca)
    const given = ca === undefined ? [] : read(ca)
    const among = [...chains.values()].flat().filter(isSelfSigned)
    const anchors = given.length + own.length > 0 ? [...given, ...own] : among
    const found: Found[] = []
    if (config !== null) {
      const { cert: leaf, ca: bundle } = config.identity
      const chain = inLeafOrder(leaf, read(leaf), own, nowMs)
      const isAnchor = (one: Found): boolean => own.some(({ sha256 }) => sha256 === one.sha256)
      found.push(...chain.map((one) => (isAnchor(one) ? { ...one, file: bundle } : one)))
      found.push(...others(bundle, own, found, nowMs, true))
      const { cert, key } = config.identity.signer
      if (cert !== null) found.push(...inLeafOrder(cert, read(cert), own, nowMs))
      if (cert !== null && key !== null && existsSync(key))
        readSigningAuthority({ cert, key }, own, nowMs)
      for (const { cert: path } of config.serverCertificates) {
        // Skips a missing file. A partly written file is listed anyway; the running controller
        // reports that it does not use the file.
        if (existsSync(path)) found.push(...inLeafOrder(path, read(path), [], nowMs))
      }
    }
    for (const [file, chain] of chains) found.push(...inLeafOrder(file, chain, anchors, nowMs))
    return found
  } catch (error) {
    if (!(error instanceof CertificateError || error instanceof SecretFileError)) throw error
    throw new CommandFailure(EXIT_FAILED, error.message, error)
  }
}

function read(path: string): [Certificate, ...Certificate[]] {
  return readCertificates(path, BUNDLE_CERTIFICATES_MAX)
}

function isSelfSigned({ isAuthority, native }: Certificate): boolean {
  return isAuthority && native.checkIssued(native)
}

/**
 * The certificates in a file: in the order of the chain if the file contains a leaf, otherwise in
 * the order of the file.
 */
function inLeafOrder(
  file: string,
  chain: readonly [Certificate, ...Certificate[]],
  anchors: readonly Certificate[],
  nowMs: number,
): Found[] {
  return inspectChain(chain, anchors, nowMs).map((one) => ({ ...one, file }))
}

/** CA certificates that are not part of a printed chain. */
function others(
  file: string,
  certificates: readonly Certificate[],
  shown: readonly Found[],
  nowMs: number,
  isTrusted: boolean,
): Found[] {
  return certificates
    .filter(({ sha256 }) => !shown.some((one) => one.sha256 === sha256))
    .map((certificate) => ({ ...inspectCertificate(certificate, nowMs, isTrusted), file }))
}

const IN_FORCE = { method: 'GET', path: '/fabric/v1/pki/certificates' } as const

/** @returns null when the controller does not run; the command then prints only the files. */
async function askRunning(config: ControllerConfig): Promise<ActiveCertificates | null> {
  try {
    return (await sendToAdminSocket(config.data, IN_FORCE)) as ActiveCertificates
  } catch (error) {
    if (!(error instanceof AdminSocketError)) throw error
    if (error.code === 'NOT_RUNNING') return null
    throw new CommandFailure(EXIT_FAILED, `${config.id}: ${error.message}`, error)
  }
}

/**
 * Adds the authority with which the cluster currently signs, if no file contains it: the
 * certificate files may come from an earlier authority or another CA.
 */
function inspectRunning(
  { issuingPem }: ActiveCertificates,
  config: ControllerConfig,
  shown: readonly Found[],
  nowMs: number,
): Found[] {
  if (issuingPem === null) return []
  const chain = parseCertificates(issuingPem)
  const [issuing] = inspectChain(chain, read(config.identity.ca), nowMs)
  if (issuing === undefined || shown.some(({ sha256 }) => sha256 === issuing.sha256)) return []
  return [{ ...issuing, file: 'cluster' }]
}

function faultsOf(one: Found): string[] {
  const name = `${one.file}: ${one.subject}`
  const faults: string[] = []
  if (one.level === 'expired') faults.push(`${name}: expired at ${isoTime(one.notAfterMs)}`)
  if (one.isNotYetValid) faults.push(`${name}: not valid before ${isoTime(one.notBeforeMs)}`)
  if (one.isTrusted === false) faults.push(`${name}: chains to none of the CA certificates`)
  return faults
}

function print(
  found: readonly Found[],
  faults: readonly string[],
  running: ActiveCertificates | null,
): void {
  printJson({
    ok: faults.length === 0,
    certificates: found.map((one) => ({
      ...one,
      notBefore: isoTime(one.notBeforeMs),
      notAfter: isoTime(one.notAfterMs),
    })),
    isRunning: running !== null,
    isRenewedHere: running?.isRenewedHere ?? null,
    renewAt: timeOrNull(running?.renewAtMs ?? null),
    refused: running?.refused ?? null,
    alarm: running?.alarm ?? null,
  })
}

function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms)
}

function show(found: readonly Found[], running: ActiveCertificates | null): void {
  const titles = [
    'what',
    'subject',
    'names',
    'not after',
    'days left',
    'issued by',
    'trusted',
    'file',
  ]
  const rows = found.map((one) => [
    one.what,
    one.subject,
    one.names.length === 0 ? '-' : one.names.join(', '),
    isoTime(one.notAfterMs),
    String(one.daysLeft),
    one.issuer === one.subject ? 'itself' : one.issuer,
    one.isTrusted === null ? '-' : one.isTrusted ? 'yes' : 'no',
    one.file,
  ])
  printLine(formatTable(titles, rows))
  if (running === null) return
  printLine('')
  printLine(
    running.renewAtMs === null
      ? 'the controller does not renew its certificate; its issuer must'
      : `the controller renews its certificate from ${isoTime(running.renewAtMs)} on`,
  )
  for (const { path, refused } of running.serverCertificates ?? []) {
    if (refused !== null) printLine(`${path} is not in use: ${refused}`)
  }
  if (running.refused !== null) printLine(`the files are not in use: ${running.refused}`)
  if (running.alarm !== null) printLine(`warning: ${running.alarm}`)
}
