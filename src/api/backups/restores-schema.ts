import type { NamedSchema } from '../../entities/operations.ts'
import { text } from '../../entities/shapes.ts'
import { restoreLimits } from '../../fsm/records/restore-limits.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

const id = { type: 'string', minLength: 1, maxLength: 64 } as const
const sha256 = { type: 'string', pattern: '^[0-9a-f]{64}$' } as const
const count = { type: 'integer', minimum: 0 } as const
const isTrue = { type: 'boolean' } as const

/** Bytes in base64. */
function base64(bytesMax: number) {
  const maxLength = 4 * Math.ceil(bytesMax / 3)
  return { type: 'string', contentEncoding: 'base64', maxLength } as const
}

export const restoreBegin = objectSchema(
  'clusterRestoreBegin',
  {
    id,
    sha256,
    chunks: count,
    bytes: count,
    featureLevel: count,
    clusterId: { type: 'string', maxLength: 64 },
    allowsOtherCluster: isTrue,
  },
  ['id', 'sha256', 'chunks', 'bytes', 'featureLevel', 'clusterId'],
)

export const restoreChunk = objectSchema(
  'clusterRestoreChunk',
  { id, number: count, endsBlock: isTrue, bytes: base64(restoreLimits.chunkBytesMax) },
  ['id', 'number', 'bytes', 'endsBlock'],
)

export const restoreEnd = objectSchema(
  'clusterRestoreEnd',
  {
    id,
    sha256,
    isAbandoned: isTrue,
    ifIndex: count,
    reason: { type: 'string', maxLength: 512 },
  },
  ['id', 'sha256'],
)

export const restored: NamedSchema = {
  name: 'clusterRestored',
  schema: {
    type: 'object',
    properties: { index: { type: 'number' }, applied: { type: 'array', items: text } },
    required: ['index', 'applied'],
    additionalProperties: false,
  },
}

const factor = {
  type: 'object',
  properties: {
    identityId: text,
    secretId: text,
    codesId: text,
    secret: base64(64),
    recoveryCodes: { type: 'array', items: text, maxItems: 64 },
  },
  required: ['identityId', 'secretId', 'codesId', 'secret', 'recoveryCodes'],
} as const

export const restoreFactors = objectSchema(
  'clusterRestoreFactors',
  { factors: { type: 'array', items: factor, maxItems: 64 } },
  ['factors'],
)

export const sealedFactors: NamedSchema = {
  name: 'clusterSealedFactors',
  schema: {
    type: 'array',
    items: {
      type: 'object',
      properties: { sealed: text, keyVersion: { type: 'number' } },
      required: ['sealed', 'keyVersion'],
      additionalProperties: false,
    },
  },
}
