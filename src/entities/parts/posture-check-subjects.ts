/** Subjects of checks on a client's machine, as in request bodies. */
const osTypes = ['Windows', 'WindowsServer', 'Android', 'iOS', 'Linux', 'macOS'] as const
const osType = { type: 'string', enum: osTypes } as const
const bounded = { type: 'string', maxLength: 512 } as const
const manyBounded = { type: 'array', maxItems: 1024, items: bounded } as const
const path = { type: 'string', maxLength: 4096 } as const

export const operatingSystem = {
  type: 'object',
  properties: { type: osType, versions: { type: 'array', maxItems: 256, items: bounded } },
  required: ['type', 'versions'],
} as const
export const runningProcess = {
  type: 'object',
  properties: { hashes: manyBounded, osType, path, signerFingerprint: bounded },
  required: ['osType', 'path'],
} as const
export const oneOfProcesses = {
  type: 'object',
  properties: { hashes: manyBounded, osType, path, signerFingerprints: manyBounded },
  required: ['osType', 'path'],
} as const
