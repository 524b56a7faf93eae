import type { Index, Position } from '../raft/types.ts'

/** A record of the replicated state in the store: one key, one value. */
export interface StoreRecord {
  readonly key: string
  /** JSON of the record; null in a batch: the batch deletes the key. */
  readonly value: string | null
}

/**
 * The log position of a batch and facts about it, which the store writes with the records in one
 * atomic batch.
 */
export interface StorePosition {
  readonly position: Position
  /** Log time of the entry at `position`. */
  readonly timeMs: number
  /** The membership.v1.Configuration that applies at `position`, base64. */
  readonly configuration: string
  /** Feature level at `position`. A controller checks it before it reads any record. */
  readonly featureLevel: number
  /** Hex digests at `position`. */
  readonly digest: string
  readonly entitiesDigest: string
}

/**
 * Durable storage of the applied state, which is written after the state in memory changed. A batch
 * is atomic and synced: after a crash the store has the records and the position of one batch,
 * never a mix.
 */
export interface StateStore {
  /** Position of the last written batch; null: the store is new. */
  mark(): StorePosition | null
  /**
   * True if the state is exactly that of a snapshot: the store has written nothing since the last
   * `swap`.
   */
  cameBySnapshot(): boolean
  /** All records in key order. */
  records(): AsyncIterable<StoreRecord & { readonly value: string }>
  /** Writes a batch; resolves when it is synced. Only one call may be in progress. */
  write(records: readonly StoreRecord[], mark: StorePosition): Promise<void>
  /**
   * A consistent view of the store at its last written position, which later writes do not change.
   * The caller must close it.
   */
  snapshot(): Promise<StoreSnapshot>
  /**
   * Begins a second, empty store in addition to the live one. After `finish`, `swap` makes it the
   * live store.
   */
  receive(): Promise<StoreReceiver>
  close(): Promise<void>
}

/** An unchanging view of the store, for sending it to another controller. */
export interface StoreSnapshot {
  readonly mark: StorePosition
  /**
   * The whole store, including its position, in chunks of limited size; the store defines the
   * format.
   * @param onKey called with the key of each record, in key order.
   */
  chunks(onKey?: (key: string) => void): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

/** Receives a whole store while the current one is in use, and then replaces the current one. */
export interface StoreReceiver {
  /**
   * The caller must await each call before the next one, for back-pressure. @throws on a malformed
   * chunk.
   */
  write(chunk: Uint8Array): Promise<void>
  /**
   * Verifies the whole content, syncs it, and returns its position; the live store stays unchanged.
   * @throws when the content is invalid.
   */
  finish(): Promise<StorePosition>
  /**
   * Makes the received store the live one, durably. All readers of the old store must have ended.
   */
  swap(): Promise<void>
  abandon(): Promise<void>
}

/**
 * Log indexes up to which entries are applied: `applied` in memory, `persisted` in the store. The
 * log may be truncated only below `persisted`.
 */
export interface ApplyProgress {
  readonly applied: Index
  readonly persisted: Index
}
