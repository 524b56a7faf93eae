import type { NamedSchema } from '../../entities/operations.ts'
import {
  textSchema,
  closedObjectSchema,
  openObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import { restoreLimits } from '../../fsm/records/restore-limits.ts'
import { objectSchema, type SchemaValue } from '../schemas/typed-schema.ts'

const id = { type: 'string', minLength: 1, maxLength: 64 } as const
const sha256 = { type: 'string', pattern: '^[0-9a-f]{64}$' } as const
const count = { type: 'integer', minimum: 0 } as const
const isTrue = { type: 'boolean' } as const

/** Schema of a string that contains at most `bytesMax` bytes in base64. */
function base64(bytesMax: number) {
  const maxLength = 4 * Math.ceil(bytesMax / 3)
  return { type: 'string', contentEncoding: 'base64', maxLength } as const
}

/** Body that starts a restore: the sizes and the digest of the chunks that follow. */
export const restoreBeginSchema = objectSchema(
  'clusterRestoreBegin',
  {
    // Id of the restore, chosen by the caller; each step of the restore contains this id.
    id,
    // SHA-256 over all chunks in order.
    sha256,
    chunks: count,
    bytes: count,
    featureLevel: count,
    // Id of the cluster from which the backup was taken.
    clusterId: { type: 'string', maxLength: 64 },
    allowsOtherCluster: isTrue,
  },
  ['id', 'sha256', 'chunks', 'bytes', 'featureLevel', 'clusterId'],
)

export const restoreChunkSchema = objectSchema(
  'clusterRestoreChunk',
  {
    id,
    // Number of the chunk; the first chunk has number 0.
    number: count,
    endsBlock: isTrue,
    bytes: base64(restoreLimits.chunkBytesMax),
  },
  ['id', 'number', 'bytes', 'endsBlock'],
)

export const restoreEndSchema = objectSchema(
  'clusterRestoreEnd',
  {
    id,
    sha256,
    // True: cancels the restore and drops the chunks received so far; no record changes.
    isAbandoned: isTrue,
    // The cluster refuses the restore if a record was written after this log index; 0 disables this
    // check.
    ifIndex: count,
    // Identifies the backup in the audit log.
    reason: { type: 'string', maxLength: 512 },
  },
  ['id', 'sha256'],
)

export const restoreResultSchema: NamedSchema = {
  name: 'clusterRestored',
  schema: closedObjectSchema({
    index: { type: 'number' },
    applied: { type: 'array', items: textSchema },
  }),
}

/** A second factor, unencrypted; its secret is in base64. */
export type UnencryptedFactorBody = SchemaValue<typeof factor>

const factor = openObjectSchema({
  identityId: textSchema,
  secretId: textSchema,
  codesId: textSchema,
  secret: base64(64),
  recoveryCodes: { type: 'array', items: textSchema, maxItems: 64 },
})

export const restoreFactorsSchema = objectSchema(
  'clusterRestoreFactors',
  { factors: { type: 'array', items: factor, maxItems: 64 } },
  ['factors'],
)

export const encryptedFactorsSchema: NamedSchema = {
  name: 'clusterSealedFactors',
  schema: arraySchema(closedObjectSchema({ sealed: textSchema, keyVersion: { type: 'number' } })),
}
