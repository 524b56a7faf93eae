import { type BackupRecipient, parseRecipient } from '../../backup/encryption.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { CertificateError } from '../../pki/certificate.ts'
import type { Actor } from '../../ports/actor.ts'
import type { ActionRecorder, ClusterAction } from '../../ports/membership.ts'
import type {
  BackupControl,
  BackupRequest,
  ScheduledBackups,
} from '../../api/backups/backup-control.ts'
import type { BackupFolder } from './backup-folder.ts'
import {
  type BackupParts,
  type BackupWish,
  bytesOf,
  takeBackup,
  type TakenBackup,
} from './take-backup.ts'

/** Backups at a time: each reads the whole state on the thread that serves requests. */
const BACKUPS_MAX = 1

interface ControlParts extends BackupParts {
  readonly actions: ActionRecorder
  /** null: none are taken by schedule. */
  readonly folder: Pick<BackupFolder, 'list'> | null
}

/** How operators are handed backups. */
export function backupControl(parts: ControlParts): BackupControl {
  let running = 0
  const take: BackupControl['take'] = async (request, by) => {
    const wish = wishOf(request)
    if (running >= BACKUPS_MAX) {
      throw new Problem('RATE_LIMITED', {
        detail: 'another backup is in progress on this controller',
      })
    }
    running += 1
    const end = (outcome: ClusterAction['outcome']): void => {
      running -= 1
      void parts.actions.note({ ...actionOf(parts, wish), outcome }, by)
    }
    try {
      await tell(parts, wish, by)
      const taken = await takeBackup(parts, wish)
      return await handedOut(parts, taken, end)
    } catch (error) {
      end(error instanceof Problem ? error.code : 'UNHANDLED')
      throw error
    }
  }
  return { take, list: () => listed(parts.folder) }
}

async function listed(folder: ControlParts['folder']): Promise<ScheduledBackups> {
  if (folder === null) return { isScheduled: false, backups: [] }
  try {
    return { isScheduled: true, backups: await folder.list() }
  } catch (error) {
    // It is made with the first one.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return { isScheduled: true, backups: [] }
  }
}

/**
 * The bytes, and what came of them, whether they are read to the end, to some point or not at all.
 */
async function handedOut(
  parts: ControlParts,
  taken: TakenBackup,
  onEnd: (outcome: ClusterAction['outcome']) => void,
): Promise<AsyncGenerator<Uint8Array>> {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    try {
      yield new Uint8Array()
      yield* bytesOf(parts, taken)
    } finally {
      await taken.close()
      onEnd(taken.writer.written === null ? 'TIMEOUT' : 'done')
    }
  }
  const begun = bytes()
  // Only what was begun can be ended.
  await begun.next()
  return begun
}

/**
 * Notes who takes the secrets, and with them all that the cluster is trusted by: nothing is handed
 * out before the log says who asked.
 */
async function tell(
  { actions, ...parts }: ControlParts,
  wish: BackupWish,
  by: Actor,
): Promise<void> {
  const wanted: ClusterAction = { ...actionOf(parts, wish), outcome: 'requested' }
  // Without a quorum nothing can be written to the log, and a backup may be all that is left to do.
  if (wish.isLinearizable) await actions.record(wanted, by)
  else void actions.note(wanted, by)
}

function actionOf(
  { cluster }: Pick<BackupParts, 'cluster'>,
  { recipient, hasSecrets }: BackupWish,
): Omit<ClusterAction, 'outcome'> {
  const manner = recipient === null ? 'unencrypted' : 'encrypted'
  const reason = `${hasSecrets ? 'with' : 'without'} secrets, ${manner}`
  return { action: 'backup', target: cluster.selfId, reason }
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
function wishOf({ recipientPem, hasSecrets, isPlaintext, isStale }: BackupRequest): BackupWish {
  const recipient = recipientPem === null ? null : recipientOf(recipientPem)
  if (hasSecrets && recipient === null && !isPlaintext) {
    throw fieldProblem(
      'recipientPem',
      'is required for a backup with secrets; omit the secrets, or request plaintext',
    )
  }
  return { recipient, hasSecrets, isLinearizable: !isStale }
}

function recipientOf(pem: string): BackupRecipient {
  try {
    return parseRecipient(pem)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw fieldProblem('recipientPem', error.message)
  }
}
