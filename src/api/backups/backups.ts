import type { BackupControl, BackupRequest } from './backup-control.ts'
import { detailResponse, streamedResponse } from '../http/responses/envelope.ts'
import { requestActor } from '../http/request-context.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { responseTimeLimits } from '../cluster/response-time-limits.ts'
import { objectSchema, type SchemaValue } from '../schemas/typed-schema.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  booleanSchema,
  textSchema,
  closedObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'

const flagOrNull = { type: ['boolean', 'null'] } as const

const backupRequest = objectSchema('clusterBackup', {
  recipientPem: { type: ['string', 'null'] },
  hasSecrets: flagOrNull,
  isPlaintext: flagOrNull,
  isStale: flagOrNull,
})

/** The bytes of a backup, in the format of backup files (docs/operate/backup-and-restore.md). */
const backupBytes: NamedSchema = {
  name: 'clusterBackupBytes',
  schema: { type: 'string', contentMediaType: 'application/octet-stream' },
}

const scheduledBackups: NamedSchema = {
  name: 'clusterBackups',
  schema: closedObjectSchema({
    isScheduled: booleanSchema,
    backups: arraySchema(closedObjectSchema({ name: textSchema, takenAtMs: { type: 'number' } })),
  }),
}

interface BackupOperationsDeps {
  readonly backups: BackupControl
}

/**
 * Operations that create a backup of the whole state, and that list the scheduled backups of this
 * controller.
 */
export function backupOperations({ backups }: BackupOperationsDeps): Operation[] {
  const common = { tag: 'cluster', apis: ['fabric'], permission: 'admin', success: 200 } as const
  return [
    {
      ...common,
      operationId: 'clusterBackups',
      summary: 'List the scheduled backups of this controller',
      method: 'GET',
      path: '/cluster/backups',
      response: { kind: 'detail', schema: scheduledBackups },
      needsNoState: true,
      handle: async () => detailResponse(await backups.list()),
    },
    operationWithBody({
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
      refusals: [403, 409],
      answerMsMax: responseTimeLimits.backupMsMax,
      handle: async (call, body) =>
        streamedResponse({ chunks: await backups.take(wishOf(body), requestActor(call)) }),
    }),
  ]
}

function wishOf(given: SchemaValue<typeof backupRequest.schema>): BackupRequest {
  return {
    recipientPem: given.recipientPem ?? null,
    hasSecrets: given.hasSecrets ?? false,
    isPlaintext: given.isPlaintext ?? false,
    isStale: given.isStale ?? false,
  }
}
