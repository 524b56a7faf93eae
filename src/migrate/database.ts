import { BoltFile, type BoltBucket } from './bolt/bolt-file.ts'
import { type ByteSource, FileSource } from './bolt/byte-source.ts'
import { isFileLocked } from './bolt/file-locks.ts'
import { readStoredEntries, type StoredEntry } from './boltz/stored-bucket.ts'
import { decodeTypedValue, decodeUtf8, type TypedValue } from './boltz/typed-value.ts'
import { MigrationFault } from './fault.ts'
import { SCHEMA_VERSION_MAX, SCHEMA_VERSION_MIN } from './stores/conversion.ts'
import { decodeKeyForDisplay } from './stores/stored-record.ts'

/** A record of a store, even if its fields cannot be read. */
interface DatabaseRecord {
  /** The id as text or, if it is not valid text, in hexadecimal digits. */
  readonly id: string
  readonly isText: boolean
  /** The entries of the record, or the fault that prevents reading them. */
  readonly entries: readonly StoredEntry[] | MigrationFault
}

/** Called with the fraction of a file that was checked, 0 to 1. */
export type CheckProgressListener = (share: number) => void

/** Name of the root bucket, which contains all stores. */
const STORES = 'ziti'

/** The database of an OpenZiti controller. The caller must `close` it. */
export class OpenZitiDatabase {
  /** Schema version of the database. */
  readonly version: number
  /**
   * Id of the network: the cluster's id, or the id in the history of a single controller; '' if the
   * file has neither.
   */
  readonly networkId: string
  /** Raft log index of a clustered controller; null for a single controller. */
  readonly raftIndex: number | null
  readonly #file: BoltFile
  readonly #source: ByteSource & { close?: () => void }

  /**
   * Checks the whole file.
   * @throws {MigrationFault}
   */
  constructor(source: ByteSource & { close?: () => void }, onShare: CheckProgressListener) {
    this.#source = source
    this.#file = new BoltFile(source)
    this.#file.check(onShare)
    this.version = this.#requireVersion()
    this.raftIndex = numberOf(this.#valueOf([STORES, 'metadata'], 'raftIndex'))
    const cluster = this.#valueOf([STORES, 'metadata'], 'clusterId')
    const timeline = this.#valueOf(['meta'], 'timelineId')
    this.networkId = textOf(cluster) ?? textOf(timeline) ?? ''
  }

  /** @throws {MigrationFault} */
  static open(path: string, onShare: CheckProgressListener = () => undefined): OpenZitiDatabase {
    const source = new FileSource(path)
    try {
      if (isFileLocked(source.identity)) {
        throw new MigrationFault(
          'IN_USE',
          'a controller has it open; stop the controller, or take a snapshot: ziti agent controller snapshot-db FILE',
        )
      }
      return new OpenZitiDatabase(source, onShare)
    } catch (error) {
      source.close()
      throw error
    }
  }

  close(): void {
    this.#source.close?.()
  }

  /** Names of the root buckets and of the stores, for example `meta` and `ziti/identities`. */
  get bucketNames(): string[] {
    const names = (bucket: BoltBucket | null, prefix: string): string[] =>
      bucket === null
        ? []
        : [...this.#file.entries(bucket, this.#file.visitedPages())].map(
            ({ key }) => prefix + (decodeUtf8(key) ?? decodeKeyForDisplay(key)),
          )
    return [...names(this.#file.root, ''), ...names(this.#file.find(STORES), `${STORES}/`)]
  }

  /** Number of records in a store, or of entries in another bucket. */
  count(...path: readonly string[]): number {
    const bucket = this.#file.find(...path)
    if (bucket === null) return 0
    let count = 0
    for (const _ of this.#file.entries(bucket, this.#file.visitedPages())) count += 1
    return count
  }

  /**
   * The records of a store.
   * @param isSkipped selects paths of buckets that are not read.
   * @throws {MigrationFault} DAMAGED or TOO_LARGE.
   */
  *records(
    store: string,
    isSkipped: (path: readonly string[]) => boolean,
  ): Generator<DatabaseRecord> {
    const bucket = this.#file.find(STORES, store)
    if (bucket === null) return
    const visited = this.#file.visitedPages()
    for (const { key, bucket: record } of this.#file.entries(bucket, visited)) {
      const text = decodeUtf8(key)
      const id = text ?? decodeKeyForDisplay(key)
      const isText = text !== null
      if (record === null) {
        const fault = new MigrationFault('DAMAGED', 'it is a value and no record')
        yield { id, isText, entries: fault }
        continue
      }
      yield { id, isText, entries: this.#entriesOf(record, visited, isSkipped) }
    }
  }

  #entriesOf(
    record: BoltBucket,
    visited: ReturnType<BoltFile['visitedPages']>,
    isSkipped: (path: readonly string[]) => boolean,
  ): readonly StoredEntry[] | MigrationFault {
    try {
      return readStoredEntries(this.#file, record, visited, isSkipped)
    } catch (error) {
      // A record that is too large is a fault of only that record; a damaged page is a fault of the
      // whole file.
      if (error instanceof MigrationFault && error.code === 'TOO_LARGE') return error
      throw error
    }
  }

  #requireVersion(): number {
    const version = numberOf(this.#valueOf([STORES, 'versions'], 'edge'))
    if (version === null) {
      throw new MigrationFault(
        'NOT_A_DATABASE',
        'it is a bbolt file, and not one of an OpenZiti controller; name ctrl.db, ctrl-ha.db or a snapshot of one',
      )
    }
    if (version < SCHEMA_VERSION_MIN) {
      throw new MigrationFault(
        'WRONG_VERSION',
        `its schema version is ${version}, older than that of OpenZiti 1.5; upgrade the controller to 1.5 or later first`,
      )
    }
    if (version <= SCHEMA_VERSION_MAX) return version
    throw new MigrationFault(
      'WRONG_VERSION',
      `its schema version is ${version}, and this program knows versions up to ${SCHEMA_VERSION_MAX}; use a newer release of Flotilla`,
    )
  }

  #valueOf(path: readonly string[], name: string): TypedValue {
    const bucket = this.#file.find(...path)
    if (bucket === null) return { type: 'nil' }
    const wanted = Buffer.from(name, 'utf8')
    for (const entry of this.#file.entries(bucket, this.#file.visitedPages())) {
      if (entry.bucket === null && wanted.equals(entry.key)) return decodeTypedValue(entry.value)
    }
    return { type: 'nil' }
  }
}

function textOf(value: TypedValue): string | null {
  return value.type === 'text' && value.value !== '' ? value.value : null
}

function numberOf(value: TypedValue): number | null {
  if (value.type !== 'int64') return null
  const number = Number(value.value)
  return Number.isSafeInteger(number) ? number : null
}
