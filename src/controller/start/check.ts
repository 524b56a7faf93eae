import { accessSync, constants, existsSync, statfsSync } from 'node:fs'

import { parseRecipient } from '../../backup/encryption.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { unsupportedNode } from '../../lib/runtime/supported-node.ts'
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
import { attempt, Report } from './check-report.ts'

export interface Preflight {
  /** A sentence each, remedy included; empty when the controller can start. */
  readonly faults: readonly string[]
  /** Warnings of what will need attention, without standing in the way. */
  readonly warnings: readonly string[]
  /** null when there are faults in it. */
  readonly credentials: Credentials | null
}

/**
 * Looks at all that a start needs and names everything that is wrong with it; leaves nothing
 * behind.
 */
export async function preflight(config: ControllerConfig, nowMs: number): Promise<Preflight> {
  const report = new Report()
  const unsupported = unsupportedNode()
  if (unsupported !== null) report.warnings.push(unsupported)
  const credentials = readCredentials(config, nowMs, report)
  checkSignerKey(config, report)
  checkServerCertificates(config, nowMs, report)
  checkLogFile(config, report)
  await checkDataFolder(config, report)
  await checkListeners(config, report)
  checkBackups(config, report)
  return { faults: report.faults, warnings: report.warnings, credentials }
}

const NO_BACKUPS = 'no backups are taken'

/**
 * No backup is a reason to keep a cluster from starting: what is wrong is told here, and by an
 * alarm while it runs.
 */
function checkBackups(config: ControllerConfig, report: Report): void {
  const {
    backup,
    log: { lowSpaceBytes },
  } = config
  const { folder, recipient, hook } = backup
  if (folder === null || recipient === null) return
  attempt(report, `backup.recipient: ${recipient}: `, NO_BACKUPS, () => {
    parseRecipient(readOperatorFile(recipient))
  })
  if (existsSync(folder)) {
    attempt(report, `backup.folder: ${folder}: `, NO_BACKUPS, () => {
      accessSync(folder, constants.W_OK)
      requireFreeSpace(folder, statfsSync(folder), lowSpaceBytes)
    })
  }
  const [program] = hook
  if (program === undefined) return
  const consequence = 'backups are not brought elsewhere'
  attempt(report, `backup.hook: ${program}: `, consequence, () => {
    accessSync(program, constants.X_OK)
  })
}
