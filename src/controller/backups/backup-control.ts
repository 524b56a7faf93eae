import { type BackupRecipient, parseRecipient } from '../../backup/encryption.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { CertificateError } from '../../pki/certificate.ts'
import type { Actor } from '../../ports/actor.ts'
import type { MemberView } from '../../ports/cluster-view.ts'
import type { ActionRecorder, ClusterAction } from '../../ports/membership.ts'
import type {
  BackupControl,
  BackupRequest,
  ScheduledBackups,
} from '../../api/backups/backup-control.ts'
import type { BackupFolder } from './backup-folder.ts'
import {
  type BackupDeps,
  type StartBackupOptions,
  streamBackupBytes,
  startBackup,
  type StartedBackup,
} from './start-backup.ts'

/**
 * Maximum concurrent backups that operators request. Only one, because each backup reads the whole
 * state on the thread that serves requests.
 */
const BACKUPS_MAX = 1

interface ControlDeps extends BackupDeps {
  readonly actions: ActionRecorder
  /** Folder of the scheduled backups; null if there is no schedule. */
  readonly folder: () => Pick<BackupFolder, 'list'> | null
}

/** Creates backups at the request of operators. */
export function createBackupControl(deps: ControlDeps): BackupControl {
  let running = 0
  const take: BackupControl['take'] = async (request, by) => {
    const options = optionsOf(deps, request)
    if (running >= BACKUPS_MAX) {
      throw new Problem('RATE_LIMITED', {
        detail: 'another backup is in progress on this controller',
      })
    }
    running += 1
    const end = (outcome: ClusterAction['outcome']): void => {
      running -= 1
      void deps.actions.note({ ...actionOf(deps, options), outcome }, by)
    }
    try {
      await recordRequest(deps, options, by)
      const taken = await startBackup(deps, options)
      return await handedOut(deps, taken, end)
    } catch (error) {
      end(error instanceof Problem ? error.code : 'UNHANDLED')
      throw error
    }
  }
  return { take, list: () => listed(deps.folder()) }
}

async function listed(folder: Pick<BackupFolder, 'list'> | null): Promise<ScheduledBackups> {
  if (folder === null) return { isScheduled: false, backups: [] }
  try {
    return { isScheduled: true, backups: await folder.list() }
  } catch (error) {
    // A missing folder is not an error, because the first scheduled backup creates the folder.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return { isScheduled: true, backups: [] }
  }
}

/**
 * The bytes of a backup. The audit log gets the outcome when the consumer has read all of the bytes
 * or stops reading.
 */
async function handedOut(
  deps: ControlDeps,
  taken: StartedBackup,
  onEnd: (outcome: ClusterAction['outcome']) => void,
): Promise<AsyncGenerator<Uint8Array>> {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    try {
      yield new Uint8Array()
      yield* streamBackupBytes(deps, taken)
    } finally {
      await taken.close()
      onEnd(taken.writer.written === null ? 'TIMEOUT' : 'done')
    }
  }
  const begun = bytes()
  // This call starts the generator: otherwise its `finally` would not run if the consumer never
  // reads.
  await begun.next()
  return begun
}

/**
 * Records who requests a backup, which may contain the cluster's issuing authority. The caller
 * returns no byte before the log contains this record, except for a backup that must work without a
 * quorum.
 */
async function recordRequest(
  { actions, ...deps }: ControlDeps,
  options: StartBackupOptions,
  by: Actor,
): Promise<void> {
  const wanted: ClusterAction = { ...actionOf(deps, options), outcome: 'requested' }
  // Without a quorum, the log cannot accept the record, but a backup may be the only remaining
  // remedy. Such a backup is therefore allowed without a record.
  if (options.isLinearizable) await actions.record(wanted, by)
  else void actions.note(wanted, by)
}

function actionOf(
  { cluster }: Pick<BackupDeps, 'cluster'>,
  { recipient, hasSecrets }: StartBackupOptions,
): Omit<ClusterAction, 'outcome'> {
  const manner = recipient === null ? 'unencrypted' : 'encrypted'
  const reason = `${hasSecrets ? 'with' : 'without'} secrets, ${manner}`
  return { action: 'backup', target: cluster.selfId, reason }
}

/**
 * Decodes the options of a backup request.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
function optionsOf(
  { cluster }: Pick<BackupDeps, 'cluster'>,
  { recipientPem, hasSecrets, isPlaintext, isStale }: BackupRequest,
): StartBackupOptions {
  const recipient = recipientPem === null ? null : recipientOf(recipientPem, cluster.members())
  if (hasSecrets && recipient === null && !isPlaintext) {
    throw fieldProblem(
      'recipientPem',
      'is required for a backup with secrets; omit the secrets, or request plaintext',
    )
  }
  return { recipient, hasSecrets, isLinearizable: !isStale }
}

function recipientOf(pem: string, members: readonly MemberView[]): BackupRecipient {
  try {
    return parseRecipient(pem, members)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw fieldProblem('recipientPem', error.message)
  }
}
