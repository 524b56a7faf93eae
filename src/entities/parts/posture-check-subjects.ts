import { openObjectSchema } from '../response-schemas.ts'

const osTypes = ['Windows', 'WindowsServer', 'Android', 'iOS', 'Linux', 'macOS'] as const
const osType = { type: 'string', enum: osTypes } as const
const bounded = { type: 'string', maxLength: 512 } as const
const manyBounded = { type: 'array', maxItems: 1024, items: bounded } as const
const path = { type: 'string', maxLength: 4096 } as const

/**
 * JSON Schemas for the objects that posture checks examine on a client's machine, as in request
 * bodies.
 */
export const operatingSystemSchema = openObjectSchema({
  type: osType,
  versions: { type: 'array', maxItems: 256, items: bounded },
})
export const runningProcessSchema = openObjectSchema(
  { hashes: manyBounded, osType, path, signerFingerprint: bounded },
  ['hashes', 'signerFingerprint'],
)
export const processListSchema = openObjectSchema(
  { hashes: manyBounded, osType, path, signerFingerprints: manyBounded },
  ['hashes', 'signerFingerprints'],
)
