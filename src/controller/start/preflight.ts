import { accessSync, constants, existsSync, statfsSync } from 'node:fs'

import { parseRecipient } from '../../backup/encryption.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { unsupportedNodeReason } from '../../lib/runtime/unsupported-node.ts'
import { parseCertificates } from '../../pki/certificate.ts'
import { requireFreeSpace } from '../free-space.ts'
import {
  checkServerCertificates,
  checkSignerKey,
  type Credentials,
  readCredentials,
  readOperatorFile,
} from './check-certificates.ts'
import { checkDataFolder, checkLogFile } from './check-folders.ts'
import { checkListeners } from './check-listeners.ts'
import { warnOnError, StartCheckReport } from './check-report.ts'

interface Preflight {
  /** One sentence for each fault, with a remedy; empty when the controller can start. */
  readonly faults: readonly string[]
  /** Warnings that do not prevent the start. */
  readonly warnings: readonly string[]
  /** The verified credentials; null when they are invalid. */
  readonly credentials: Credentials | null
}

/**
 * Checks everything that a start needs and reports all faults. It leaves no files behind.
 * @param isRunning true if the controller of this configuration is running: skips the checks of its
 * ports and of the lock of its data folder, which it uses itself.
 */
export async function runPreflight(
  config: ControllerConfig,
  nowMs: number,
  isRunning = false,
): Promise<Preflight> {
  const report = new StartCheckReport()
  const unsupported = unsupportedNodeReason()
  if (unsupported !== null) report.warnings.push(unsupported)
  const credentials = readCredentials(config, nowMs, report)
  checkSignerKey(config, report)
  checkServerCertificates(config, nowMs, report)
  checkLogFile(config, report)
  await checkDataFolder(config, report, isRunning)
  if (!isRunning) await checkListeners(config, report)
  checkBackups(config, report)
  return { faults: report.faults, warnings: report.warnings, credentials }
}

/** Warnings about the files that backups need, one sentence each. */
export function backupWarnings(config: ControllerConfig): readonly string[] {
  const report = new StartCheckReport()
  checkBackups(config, report)
  return report.warnings
}

const NO_BACKUPS = 'no backup will be made'

/**
 * Checks the backup options. Their faults never prevent the start: they are reported here, and by
 * an alarm at run time.
 */
function checkBackups(config: ControllerConfig, report: StartCheckReport): void {
  const {
    backup,
    log: { lowSpaceBytes },
  } = config
  const { folder, recipient, hook } = backup
  if (folder === null || recipient === null) return
  warnOnError(report, `backup.recipient: ${recipient}: `, NO_BACKUPS, () => {
    parseRecipient(readOperatorFile(recipient), ownCertificate(config))
  })
  if (existsSync(folder)) {
    warnOnError(report, `backup.folder: ${folder}: `, NO_BACKUPS, () => {
      accessSync(folder, constants.W_OK)
      requireFreeSpace(folder, statfsSync(folder), lowSpaceBytes)
    })
  }
  const [program] = hook
  if (program === undefined) return
  const consequence = 'backups are not brought elsewhere'
  warnOnError(report, `backup.hook: ${program}: `, consequence, () => {
    accessSync(program, constants.X_OK)
  })
}

/** Certificate of this controller; none if its file is unusable, which another check reports. */
function ownCertificate({ id, identity }: ControllerConfig): Parameters<typeof parseRecipient>[1] {
  try {
    const [{ pem }] = parseCertificates(readOperatorFile(identity.cert))
    return [{ id, certificatePem: pem }]
  } catch {
    return []
  }
}
