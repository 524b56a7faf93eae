import { createHash } from 'node:crypto'

import type { StoreSnapshot } from '../ports/state-store.ts'
import { BackupContainerWriter } from './container.ts'
import { type BackupSecret, encodeSecrets } from './content.ts'
import { type BackupRecipient, BackupFrameCipher, createWrappedContentKey } from './encryption.ts'
import {
  BACKUP_FORMAT,
  type BackupManifest,
  type BackupSummary,
  encodeCanonicalJson,
  manifestPositionFields,
} from './manifest.ts'

/** Manifest fields that do not come from the snapshot. */
type BackupOrigin = Pick<
  BackupManifest,
  | 'clusterId'
  | 'trustDomain'
  | 'generation'
  | 'takenAtMs'
  | 'controllerId'
  | 'version'
  | 'members'
  | 'caPem'
>

interface BackupSource {
  readonly origin: BackupOrigin
  /** Snapshot to back up; the caller closes it. */
  readonly snapshot: StoreSnapshot
  /** Secrets to write into the backup; null: none. */
  readonly secrets: readonly BackupSecret[] | null
  /** null: write the backup unencrypted. */
  readonly recipient: BackupRecipient | null
}

/** Result of writing a backup. */
export interface WrittenBackup {
  readonly manifest: BackupManifest
  readonly summary: BackupSummary
  /** SHA-256 of the whole file in hex. */
  readonly sha256: string
  /** Size of the file in bytes. */
  readonly bytes: number
}

/** Writes one backup. `chunks` reads the snapshot only as fast as its consumer accepts bytes. */
export class BackupWriter {
  readonly manifest: BackupManifest
  readonly #source: BackupSource
  readonly #key: Uint8Array | null
  readonly #counts = new Map<string, number>()
  #written: WrittenBackup | null = null

  private constructor(manifest: BackupManifest, source: BackupSource, key: Uint8Array | null) {
    this.manifest = manifest
    this.#source = source
    this.#key = key
  }

  static async begin(source: BackupSource): Promise<BackupWriter> {
    const { origin, snapshot, secrets, recipient } = source
    const made = recipient === null ? null : await createWrappedContentKey(recipient, origin)
    const manifest: BackupManifest = {
      format: BACKUP_FORMAT,
      ...origin,
      ...manifestPositionFields(snapshot.mark),
      hasSecrets: secrets !== null,
      encryption: made?.encryption ?? null,
    }
    return new BackupWriter(manifest, source, made?.key ?? null)
  }

  /** null until the consumer has received all chunks. */
  get written(): WrittenBackup | null {
    return this.#written
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    const head = encodeCanonicalJson(this.manifest)
    const cipher =
      this.#key === null
        ? null
        : new BackupFrameCipher(this.#key, createHash('sha256').update(head).digest())
    const container = new BackupContainerWriter()
    yield Buffer.concat(container.head(head))
    let bytes = 0
    for await (const part of this.#content()) {
      bytes += part.length
      yield Buffer.concat(container.frame(cipher === null ? part : cipher.seal(part)))
    }
    const counts = Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)))
    const summary = { counts, frames: container.frames, bytes }
    yield Buffer.concat(container.tail(summary))
    this.#written = {
      manifest: this.manifest,
      summary,
      sha256: container.sha256(),
      bytes: container.bytes,
    }
  }

  async *#content(): AsyncGenerator<Uint8Array> {
    yield encodeSecrets(this.#source.secrets)
    yield* this.#source.snapshot.chunks((key) => this.#count(key))
  }

  #count(key: string): void {
    const kind = kindOfKey(key)
    if (kind !== null) this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
  }
}

/** Kind of the entity in a store record; null for other records. */
function kindOfKey(key: string): string | null {
  const [room, kind] = key.split('/', 2)
  return room === 'e' ? (kind ?? null) : null
}
