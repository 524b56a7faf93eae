import { parseRecipient } from '../../backup/encryption.ts'
import type { BackupRecipient } from '../../backup/encryption.ts'
import { recorded } from '../../cluster/action-recorder.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { CertificateError } from '../../pki/certificate.ts'
import type { Actor } from '../../ports/actor.ts'
import type { ActionRecorder } from '../../ports/membership.ts'
import { AdminStream } from '../admin/stream.ts'
import type { AdminVerbs } from '../admin/server.ts'
import { bytesOf, takeBackup } from './take-backup.ts'
import type { BackupParts, BackupWish, TakenBackup } from './take-backup.ts'

/** At a time: each reads the whole state on the thread that serves requests. */
const BACKUPS_MAX = 1

/** The verb by which `cluster snapshot save` is handed a backup. */
export function backupVerbs(parts: BackupParts & { readonly actions: ActionRecorder }): AdminVerbs {
  let running = 0
  return {
    backup: async (params, by) => {
      const wish = wishOf(params)
      if (running >= BACKUPS_MAX) {
        throw new Problem('RATE_LIMITED', { detail: 'another backup is being taken here' })
      }
      running += 1
      let taken: TakenBackup
      try {
        taken = await audited(parts, wish, by)
      } catch (error) {
        running -= 1
        throw error
      }
      return new AdminStream(
        ended(bytesOf(parts, taken), () => {
          running -= 1
        }),
        () => taken.writer.written,
      )
    },
  }
}

/** With the secrets goes all that the cluster is trusted by: nothing is handed out before the log says who asked. */
async function audited(
  parts: BackupParts & { readonly actions: ActionRecorder },
  wish: BackupWish,
  by: Actor,
): Promise<TakenBackup> {
  const { recipient, hasSecrets } = wish
  const manner = recipient === null ? 'in the clear' : 'encrypted'
  const reason = `${hasSecrets ? 'with' : 'without'} secrets, ${manner}`
  const wanted = { action: 'backup', target: parts.cluster.selfId, reason }
  if (wish.isLinearizable) {
    return await recorded(parts.actions, wanted, by, () => takeBackup(parts, wish))
  }
  const taken = await takeBackup(parts, wish)
  void parts.actions.note({ ...wanted, outcome: 'done' }, by)
  return taken
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
      'is needed for a backup with secrets; leave the secrets out, or say that they are to be in the clear',
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
