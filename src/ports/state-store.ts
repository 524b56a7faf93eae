import type { Index, Position } from '../raft/types.ts'

/** A record of the replicated state in the store: one key, one value. */
export interface StoreRecord {
  readonly key: string
  /** null in a batch deletes the key. */
  readonly value: string | null
}

/** Data that is written with the records in one atomic batch. */
export interface StorePosition {
  readonly position: Position
  /** Log time of the entry at `position`. */
  readonly timeMs: number
  /** membership.v1.Configuration in force at `position`, base64. */
  readonly configuration: string
  /** Feature level at `position`. It is checked before any record is read. */
  readonly featureLevel: number
  /** Hex digests at `position`. */
  readonly digest: string
  readonly entitiesDigest: string
}

/**
 * Durable storage of the applied state, written after the state in memory. A batch is atomic and
 * synced: after a crash the store has the records and the mark of one batch, never a mix.
 */
export interface StateStore {
  /** null: the store is new. */
  mark(): StorePosition | null
  /**
   * True if the state is exactly that of a snapshot: nothing was written past the mark of the last
   * `swap`.
   */
  cameBySnapshot(): boolean
  /** Records in key order. */
  records(): AsyncIterable<StoreRecord & { readonly value: string }>
  /** One call at a time; resolves when synced. */
  write(records: readonly StoreRecord[], mark: StorePosition): Promise<void>
  /** A consistent view at the last written mark; unaffected by later writes. Must be closed. */
  snapshot(): Promise<StoreSnapshot>
  /**
   * Begins a second, empty store beside the live one. After `finish`, `swap` makes it the live
   * store.
   */
  receive(): Promise<StoreReceiver>
  close(): Promise<void>
}

/** An unchanging view of the store, to send to another controller. */
export interface StoreSnapshot {
  readonly mark: StorePosition
  /**
   * Bounded chunks of the whole store, including the mark; the store defines the format.
   * @param onKey called with the key of each record, in key order.
   */
  chunks(onKey?: (key: string) => void): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

/** Receives a whole state beside the current one, and then replaces the current one. */
export interface StoreReceiver {
  /** Await each call, for back-pressure. @throws on a malformed chunk. */
  write(chunk: Uint8Array): Promise<void>
  /**
   * Verifies the whole content, syncs it, and returns its mark; the live store stays unchanged.
   * @throws when the content is invalid.
   */
  finish(): Promise<StorePosition>
  /** Makes the received store the live one, durably; readers of the old one must have ended. */
  swap(): Promise<void>
  abandon(): Promise<void>
}

/**
 * Progress of apply: `applied` in memory, `persisted` in the store. The log may be truncated only
 * below `persisted`.
 */
export interface ApplyProgress {
  readonly applied: Index
  readonly persisted: Index
}
