import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { writeSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'

import { parseRecipient } from '../../backup/encryption.ts'
import type { ControllerConfig } from '../../config/options.ts'
import { formatHostPort, parseHostPort } from '../../lib/names.ts'
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
import { readFence } from '../../store/fence-file.ts'
import { lockDataFolder } from '../../store/folder-lock.ts'
import { readIdentity } from '../../store/identity.ts'
import { sentenceOf } from '../failure.ts'
import { fencedSentence } from './member-fate.ts'
import { hasNoData } from './set-aside.ts'

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

class Report {
  readonly faults: string[] = []
  readonly warnings: string[] = []

  /** Runs a step; what it throws becomes a fault that begins with `subject`. */
  attempt<T>(subject: string, remedy: string, step: () => T): T | null {
    try {
      return step()
    } catch (error) {
      this.faults.push(`${subject}${sentenceOf(error)}; ${remedy}`)
      return null
    }
  }
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

/** Leaves nothing behind: whether the file can be made is judged by its folder. */
function checkLogFile({ logFile: { path } }: ControllerConfig, report: Report): void {
  if (path === null) return
  const subject = `logFile.path: ${path} cannot be written: `
  report.attempt(subject, 'name a file in a folder that this user can write', () => {
    accessSync(dirname(path), constants.W_OK | constants.X_OK)
    const there = lstatSync(path, { throwIfNoEntry: false })
    if (there !== undefined && !there.isFile()) throw new Error('not a regular file')
    if (there !== undefined) accessSync(path, constants.W_OK)
  })
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

async function checkDataFolder(config: ControllerConfig, report: Report): Promise<void> {
  const folder = config.data
  const status = report.attempt(
    `data: ${folder}: `,
    'give this user access to the parent folder',
    () => statSync(folder, { throwIfNoEntry: false }),
  )
  if (status === null) return
  const isLost = status === undefined || (status.isDirectory() && hasNoData(folder))
  if (isLost && config.cluster.seeds.length > 0) {
    checkParent(folder, report)
    return
  }
  if (status === undefined) {
    report.faults.push(
      `data: ${folder} does not exist; name the data folder of this controller (an empty one would lose its votes)`,
    )
    return
  }
  if (!status.isDirectory()) {
    report.faults.push(`data: ${folder} is not a folder; name the data folder of this controller`)
    return
  }
  if (canWrite(folder, report)) checkSpace(config, report)
  checkOwner(config, report)
  checkFence(config, report)
  await checkUnused(config, report)
}

/** The folder itself is formed once the peers have let this controller in again. */
function checkParent(folder: string, report: Report): void {
  const parent = dirname(folder)
  const probe = report.attempt(
    `data: ${parent}: `,
    'create the folder, writable for this user',
    () => {
      accessSync(parent, constants.W_OK)
      return true
    },
  )
  if (probe === null) return
  report.warnings.push(`data: ${folder} is empty; a start requests re-admission from the seeds`)
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

function attempt(report: Report, subject: string, step: () => void): void {
  try {
    step()
  } catch (error) {
    report.warnings.push(
      `${subject}${sentenceOf(error)}; no backups are taken until it is corrected`,
    )
  }
}

/** Only where somebody has held it before: the lock itself would leave a folder behind in a fresh one. */
async function checkUnused({ data }: ControllerConfig, report: Report): Promise<void> {
  if (!existsSync(join(data, 'lock'))) return
  try {
    const lock = await lockDataFolder(data)
    await lock.release()
  } catch (error) {
    report.faults.push(`data: ${sentenceOf(error)}`)
  }
}

/** The folder was formed for this controller; one copied from another would vote with its promises. */
function checkOwner(config: ControllerConfig, report: Report): void {
  let owner: string
  try {
    owner = readIdentity(config.data).nodeId
  } catch (error) {
    report.faults.push(`data: ${sentenceOf(error)}`)
    return
  }
  if (owner === config.id) return
  report.faults.push(
    `data: ${config.data} belongs to controller ${owner}, but id is ${config.id}; name the data folder of ${config.id}`,
  )
}

/** Members of an older generation among themselves would be a cluster of their own. */
function checkFence({ id, data }: ControllerConfig, report: Report): void {
  const fence = report.attempt('data: ', 'make it readable for this user', () => readFence(data))
  if (fence !== null) report.faults.push(`data: ${data}: ${fencedSentence(id, fence)}`)
}

/** Writes and syncs a small file, as permission bits tell nothing of a read-only or full disk. */
function canWrite(folder: string, report: Report): boolean {
  const probe = join(folder, `.probe-${process.pid}`)
  try {
    const file = openSync(probe, 'wx', 0o600)
    try {
      writeSync(file, Buffer.alloc(4096))
      fsyncSync(file)
    } finally {
      closeSync(file)
      rmSync(probe, { force: true })
    }
    return true
  } catch (error) {
    report.faults.push(`data: ${folder} ${writeFaultOf(error)}`)
    return false
  }
}

function writeFaultOf(error: unknown): string {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
      return 'is not writable for this user; change its owner to the user that runs the controller'
    case 'EROFS':
      return 'is on a read-only file system; mount it writable'
    case 'ENOSPC':
    case 'EDQUOT':
      return 'has no space left; free disk space'
    default:
      return `cannot be written (${sentenceOf(error)}); check its file system`
  }
}

function checkSpace(config: ControllerConfig, report: Report): void {
  const { bavail, bsize } = statfsSync(config.data)
  const free = bavail * bsize
  if (free < config.log.lowSpaceBytes) {
    report.faults.push(
      `data: ${config.data} has ${free} bytes left, less than log.lowSpaceBytes (${config.log.lowSpaceBytes}); free disk space`,
    )
  }
}

async function checkListeners(config: ControllerConfig, report: Report): Promise<void> {
  const binds = [
    { key: 'cluster.bind', bind: config.cluster.bind },
    ...(config.routers.bind === null ? [] : [{ key: 'routers.bind', bind: config.routers.bind }]),
    ...config.web.map(({ bind }, at) => ({ key: `web[${at}].bind`, bind })),
  ]
  for (const { key, bind } of binds) {
    const fault = await listenFault(bind)
    if (fault !== null) report.faults.push(`${key}: ${bind} ${fault}`)
  }
}

/** Whether an address can be listened on, by doing so for a moment. @returns null, or what is wrong and the remedy. */
export async function listenFault(bind: string): Promise<string | null> {
  const { host, port } = parseHostPort(bind) ?? { host: '', port: 0 }
  const server = createServer()
  const error = await new Promise<unknown>((resolve) => {
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => resolve(null))
  })
  if (error === null) {
    await new Promise((resolve) => server.close(resolve))
    return null
  }
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return `is in use by another process; stop that process ('ss -ltnp sport = :${port}' names it), or choose another port`
    case 'EACCES':
      return 'needs a privileged user; choose a port above 1023'
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `is not an address of this host; bind one that is, or ${formatHostPort({ host: '0.0.0.0', port })}`
    default:
      return `cannot be listened on (${sentenceOf(error)}); choose another address`
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null
}
