import { parseRecipient } from '../../backup/encryption.ts'
import type { BackupRecipient } from '../../backup/encryption.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { CertificateError } from '../../pki/certificate.ts'
import type { Actor } from '../../ports/actor.ts'
import type { ActionRecorder, ClusterAction } from '../../ports/membership.ts'
import { AdminStream } from '../admin/stream.ts'
import type { AdminVerbs } from '../admin/server.ts'
import { bytesOf, takeBackup } from './take-backup.ts'
import type { BackupParts, BackupWish } from './take-backup.ts'

/** At a time: each reads the whole state on the thread that serves requests. */
const BACKUPS_MAX = 1

/** The verb by which `cluster snapshot save` is handed a backup. */
export function backupVerbs(parts: VerbParts): AdminVerbs {
  let running = 0
  return {
    backup: async (params, by) => {
      const wish = wishOf(params)
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
        const { writer } = taken
        const isWhole = (): boolean => writer.written !== null
        // The caller may be gone before the end of it.
        const chunks = ended(bytesOf(parts, taken), () => end(isWhole() ? 'done' : 'TIMEOUT'))
        return new AdminStream(chunks, () => writer.written)
      } catch (error) {
        end(error instanceof Problem ? error.code : 'UNHANDLED')
        throw error
      }
    },
  }
}

interface VerbParts extends BackupParts {
  readonly actions: ActionRecorder
}

/** With the secrets goes all that the cluster is trusted by: nothing is handed out before the log says who asked. */
async function tell({ actions, ...parts }: VerbParts, wish: BackupWish, by: Actor): Promise<void> {
  const wanted: ClusterAction = { ...actionOf(parts, wish), outcome: 'requested' }
  // Without a quorum nothing can be written to the log, and a backup may be all that is left to do.
  if (wish.isLinearizable) await actions.record(wanted, by)
  else void actions.note(wanted, by)
}

function actionOf(
  { cluster }: Pick<BackupParts, 'cluster'>,
  { recipient, hasSecrets }: BackupWish,
): Omit<ClusterAction, 'outcome'> {
  const manner = recipient === null ? 'in the clear' : 'encrypted'
  const reason = `${hasSecrets ? 'with' : 'without'} secrets, ${manner}`
  return { action: 'backup', target: cluster.selfId, reason }
}

async function* ended<T>(chunks: AsyncIterable<T>, onEnd: () => void): AsyncGenerator<T> {
  try {
    yield* chunks
  } finally {
    onEnd()
  }
}

/** @throws {Problem} COULD_NOT_VALIDATE. */
function wishOf(params: Readonly<Record<string, unknown>>): BackupWish {
  const { recipientPem = null, hasSecrets, isPlaintext, isStale } = params
  const recipient = recipientPem === null ? null : recipientOf(recipientPem)
  if (hasSecrets === true && recipient === null && isPlaintext !== true) {
    throw fieldProblem(
      'recipientPem',
      'is required for a backup with secrets; omit the secrets, or request plaintext',
    )
  }
  return { recipient, hasSecrets: hasSecrets === true, isLinearizable: isStale !== true }
}

function recipientOf(pem: unknown): BackupRecipient {
  if (typeof pem !== 'string') throw fieldProblem('recipientPem', 'must be a text')
  try {
    return parseRecipient(pem)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw fieldProblem('recipientPem', error.message)
  }
}
