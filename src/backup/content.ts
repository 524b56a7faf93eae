/**
 * The content of a backup: u32 bytes of the secrets (0: none) · secrets (JSON) · the state in the
 * snapshot format (src/store/state/snapshot-stream.ts).
 */
import { canonicalJson } from '../lib/text/canonical-json.ts'
import { type SharedSecretName, sharedSecretNames } from '../lib/shared-secrets.ts'
import { SECRET_BYTES_MAX } from '../pki/secrets/wrapped-secret.ts'
import { damagedBackupFault } from './backup-fault.ts'
import { backupLimits } from './limits.ts'

/**
 * One version, in plaintext, of a secret that all controllers share. After a key rotation, a secret
 * may have several versions.
 */
export interface BackupSecret {
  readonly name: SharedSecretName
  readonly version: number
  readonly secret: Uint8Array
}

const COUNT_BYTES = 4

/** Encodes the secrets, which are the first bytes of the content. */
export function encodeSecrets(secrets: readonly BackupSecret[] | null): Uint8Array {
  const text =
    secrets === null
      ? ''
      : canonicalJson(
          secrets.map(({ name, version, secret }) => ({
            name,
            version,
            secret: Buffer.from(secret).toString('base64'),
          })),
        )
  const json = Buffer.from(text, 'utf8')
  const head = Buffer.alloc(COUNT_BYTES)
  head.writeUInt32LE(json.length)
  return Buffer.concat([head, json])
}

/** Decodes the content chunk by chunk: stores the secrets and returns the bytes of the state. */
export class BackupContentReader {
  #secrets: readonly BackupSecret[] | null = null
  #head: Buffer | null = Buffer.alloc(0)

  /** null if the backup contains no secrets, or they have not been read yet. */
  get secrets(): readonly BackupSecret[] | null {
    return this.#secrets
  }

  /** @throws {BackupFault} DAMAGED. */
  push(bytes: Uint8Array): Uint8Array {
    if (this.#head === null) return bytes
    this.#head = Buffer.concat([this.#head, bytes])
    if (this.#head.length < COUNT_BYTES) return new Uint8Array(0)
    const length = this.#head.readUInt32LE()
    if (length > backupLimits.secretsBytesMax)
      throw damagedBackupFault('the secrets of the backup are malformed')
    const end = COUNT_BYTES + length
    if (this.#head.length < end) return new Uint8Array(0)
    if (length > 0) this.#secrets = decodeSecrets(this.#head.subarray(COUNT_BYTES, end))
    const state = this.#head.subarray(end)
    this.#head = null
    return state
  }
}

function decodeSecrets(bytes: Buffer): BackupSecret[] {
  let found: unknown
  try {
    found = JSON.parse(bytes.toString('utf8'))
  } catch {
    // The error has no `cause`, because the message of a JSON error would quote the secrets.
    throw damagedBackupFault('the secrets of the backup are malformed')
  }
  const secrets = Array.isArray(found) ? found.map(secretOf) : []
  if (secrets.length > 0 && secrets.every((one) => one !== null)) return secrets
  throw damagedBackupFault('the secrets of the backup are malformed')
}

function secretOf(value: unknown): BackupSecret | null {
  const { name, version, secret } = { ...(value as Partial<Record<string, unknown>> | null) }
  const known = sharedSecretNames.find((one) => one === name)
  if (known === undefined || !Number.isSafeInteger(version) || typeof secret !== 'string') {
    return null
  }
  const bytes = Uint8Array.from(Buffer.from(secret, 'base64'))
  if (bytes.length === 0 || bytes.length > SECRET_BYTES_MAX) return null
  return { name: known, version: Number(version), secret: bytes }
}
