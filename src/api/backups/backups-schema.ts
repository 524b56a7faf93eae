import type { NamedSchema } from '../../entities/operations.ts'
import { flag, text } from '../../entities/shapes.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

const flagOrNull = { type: ['boolean', 'null'] } as const

export const backupRequest = objectSchema('clusterBackup', {
  recipientPem: { type: ['string', 'null'] },
  hasSecrets: flagOrNull,
  isPlaintext: flagOrNull,
  isStale: flagOrNull,
})

/** Its format is that of the files (docs/backup.md). */
export const backupBytes: NamedSchema = {
  name: 'clusterBackupBytes',
  schema: { type: 'string', contentMediaType: 'application/octet-stream' },
}

export const scheduledBackups: NamedSchema = {
  name: 'clusterBackups',
  schema: {
    type: 'object',
    properties: {
      isScheduled: flag,
      backups: {
        type: 'array',
        items: {
          type: 'object',
          properties: { name: text, takenAtMs: { type: 'number' } },
          required: ['name', 'takenAtMs'],
          additionalProperties: false,
        },
      },
    },
    required: ['isScheduled', 'backups'],
    additionalProperties: false,
  },
}
