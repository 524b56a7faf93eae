import { resolve } from 'node:path'

import {
  countRestoreChanges,
  type KindChangeCounts,
  planRestoreChanges,
} from '../../backup/restore-changes.ts'
import { readFileChunks } from '../../backup/backup-files.ts'
import {
  findReEnrollments,
  type ReEnrollments,
  type ReEnrollmentsOfKind,
} from '../../backup/re-enrollments.ts'
import { loadBackup, type LoadedBackup } from '../../backup/load-backup.ts'
import { printableLine, printableValue } from '../../lib/text/terminal-text.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { MemoryStateStore } from '../../store/state/memory-state-store.ts'
import { AdminSocketError, streamFromAdminSocket } from '../client/admin-socket.ts'
import { formatTable, printJson, printLine } from '../terminal/output.ts'
import { prefixErrorsWithFile } from './backup-file.ts'
import { backupOriginText, addStaleBackupHint } from './backup-text.ts'
import { BACKUP_API_PATH, chooseDataFolder } from './save.ts'
import { readBackupKey } from './verify.ts'

export interface DiffOptions {
  readonly config?: string
  readonly data?: string
  readonly key?: string
  readonly stale?: boolean
  readonly json?: boolean
}

/**
 * `cluster snapshot diff FILE` shows how a restore would change the current cluster. It changes
 * nothing.
 */
export async function diffSnapshot(path: string, options: DiffOptions): Promise<void> {
  const data = chooseDataFolder(options)
  const privateKeyPem = readBackupKey(options.key)
  const backup = await prefixErrorsWithFile(path, () =>
    loadBackup(readFileChunks(path), new MemoryStateStore(), { privateKeyPem }),
  )
  const live = await loadRunningState(data, options.stale === true)
  const effects = findRestoreEffects(live, backup)
  const isOther = live.manifest.clusterId !== backup.manifest.clusterId
  if (options.json === true) printJson(jsonOf(live, backup, effects))
  else printLine(restoreChangesText(live, backup, effects).join('\n'))
  if (!isOther || options.json === true) return
  printLine('the backup belongs to another cluster than this controller')
}

/**
 * The state of a running controller, read as a backup without secrets that is never written to
 * disk.
 */
export async function loadRunningState(data: string, isStale: boolean): Promise<LoadedBackup> {
  const request = { path: BACKUP_API_PATH, body: { hasSecrets: false, isStale } }
  try {
    const bytes = streamFromAdminSocket(resolve(data), request)
    return await loadBackup(bytes, new MemoryStateStore(), { privateKeyPem: null })
  } catch (error) {
    if (!(error instanceof AdminSocketError)) throw error
    throw new CommandFailure(EXIT_FAILED, addStaleBackupHint(error), error)
  }
}

/** Effects of a restore into the running cluster, as the preview shows them. */
export interface RestoreEffects {
  readonly changes: readonly KindChangeCounts[]
  readonly mustEnrollAgain: ReEnrollments
}

export function findRestoreEffects(live: LoadedBackup, backup: LoadedBackup): RestoreEffects {
  return {
    changes: countRestoreChanges(planRestoreChanges(live.state, backup.state)),
    mustEnrollAgain: findReEnrollments(live.state, backup.state),
  }
}

function jsonOf(live: LoadedBackup, backup: LoadedBackup, effects: RestoreEffects): object {
  const place = ({ manifest: { clusterId, generation, index } }: LoadedBackup): object => ({
    clusterId,
    generation,
    index,
  })
  return { live: place(live), backup: place(backup), ...effects }
}

/** The differences as text for the terminal. */
export function restoreChangesText(
  live: LoadedBackup,
  backup: LoadedBackup,
  { changes, mustEnrollAgain }: RestoreEffects,
): string[] {
  const { clusterId, index } = printableValue(live.manifest)
  const head = [
    `backup: ${backupOriginText(backup.manifest)}`,
    `now: cluster ${clusterId}, index ${index}`,
  ]
  if (changes.length === 0) return [...head, 'a restore would change no record']
  const rows = changes.map(({ kind, created, changed, deleted }) => [
    kind,
    String(created),
    String(changed),
    String(deleted),
  ])
  return [
    ...head,
    'records of a restore:',
    formatTable(['kind', 'created', 'changed', 'deleted'], rows),
    ...reEnrollmentsText(mustEnrollAgain),
  ]
}

/** Lines that name the routers and identities that must enroll again; none if there are none. */
export function reEnrollmentsText({ routers, identities }: ReEnrollments): string[] {
  const lines = [
    ...namesLine('routers', 'edge-router', routers),
    ...namesLine('identities', 'identity', identities),
  ]
  if (lines.length === 0) return []
  return ['must enroll again, because the backup does not contain their certificate:', ...lines]
}

function namesLine(
  label: string,
  kind: string,
  { count, first }: ReEnrollmentsOfKind,
): readonly string[] {
  if (count === 0) return []
  const names = first.map(({ name }) => printableLine(name)).join(', ')
  const more = count > first.length ? ` and ${count - first.length} more` : ''
  return [`  ${label}: ${names}${more} (new token: flotilla re-enroll ${kind} NAME)`]
}
