import type { BackupControl, BackupRequest } from './backup-control.ts'
import { detailAnswer, streamedAnswer } from '../answers/envelope.ts'
import { actorOfCall } from '../call.ts'
import { type Operation, withBody } from '../operation.ts'
import { answerTimes } from '../cluster/answer-times.ts'
import { backupBytes, backupRequest, scheduledBackups } from './backups-schema.ts'
import type { ValueOf } from '../schemas/typed-schema.ts'

interface Needs {
  readonly backups: BackupControl
}

/** Backups of the whole state by this controller. */
export function backupOperations({ backups }: Needs): Operation[] {
  const common = { tag: 'cluster', apis: ['fabric'], permission: 'admin', success: 200 } as const
  return [
    {
      ...common,
      operationId: 'clusterBackups',
      summary: 'List the scheduled backups of this controller',
      method: 'GET',
      path: '/cluster/backups',
      response: { kind: 'detail', schema: scheduledBackups },
      refusals: [401, 429, 503],
      needsNoState: true,
      handle: async () => detailAnswer(await backups.list()),
    },
    withBody({
      ...common,
      operationId: 'clusterBackup',
      summary: 'Get a backup of the whole state (admin socket only)',
      method: 'POST',
      path: '/cluster/backup',
      body: { schema: backupRequest, isRequired: false },
      response: {
        kind: 'bare',
        schema: backupBytes,
        types: ['application/octet-stream'],
        ignoresAccept: true,
      },
      refusals: [400, 401, 403, 409, 429, 503],
      answerMsMax: answerTimes.backupMsMax,
      handle: async (call, body) =>
        streamedAnswer({ chunks: await backups.take(wishOf(body), actorOfCall(call)) }),
    }),
  ]
}

function wishOf(given: ValueOf<typeof backupRequest.schema>): BackupRequest {
  return {
    recipientPem: given.recipientPem ?? null,
    hasSecrets: given.hasSecrets ?? false,
    isPlaintext: given.isPlaintext ?? false,
    isStale: given.isStale ?? false,
  }
}
