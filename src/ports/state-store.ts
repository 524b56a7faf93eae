import type { Index, Position } from '../raft/types.ts'

/** A record of the replicated state as it lies in the store: one key, one value. */
export interface StoreRecord {
  readonly key: string
  /** null in a batch: the key is deleted. */
  readonly value: string | null
}

/** Everything that moves together with the records, in one atomic batch. */
export interface StorePosition {
  readonly position: Position
  /** Log time of the entry at `position`. */
  readonly timeMs: number
  /** membership.v1.Configuration in force at `position`, base64. */
  readonly configuration: string
  /**
   * Level in force at `position`: whether this version knows it is asked before any record is read.
   */
  readonly featureLevel: number
  /** Hex digests at `position`. */
  readonly digest: string
  readonly entitiesDigest: string
}

/**
 * Durable home of the applied state, written behind the in-memory one. A batch is atomic and
 * synced: after a crash the store holds the records and the mark of one batch, never a mix.
 */
export interface StateStore {
  /** null: nothing was ever written. */
  mark(): StorePosition | null
  /**
   * True if the state is exactly that of a snapshot: nothing was written past the mark of the last
   * `swap`.
   */
  cameBySnapshot(): boolean
  /** Records in key order. */
  records(): AsyncIterable<StoreRecord & { readonly value: string }>
  /** One at a time; resolves when synced. */
  write(records: readonly StoreRecord[], mark: StorePosition): Promise<void>
  /** A consistent view at the last written mark; unaffected by later writes. Must be closed. */
  snapshot(): Promise<StoreSnapshot>
  /**
   * Begins a second, empty store beside the live one; `commit` makes it the live one at the next
   * `swap`.
   */
  receive(): Promise<StoreReceiver>
  close(): Promise<void>
}

export interface StoreSnapshot {
  readonly mark: StorePosition
  /**
   * Bounded byte chunks of the whole store, mark included; the format is the store's own.
   * @param onKey called with the key of each record, in key order.
   */
  chunks(onKey?: (key: string) => void): AsyncIterable<Uint8Array>
  close(): Promise<void>
}

export interface StoreReceiver {
  /** Applies back-pressure: await each. @throws on a malformed chunk. */
  write(chunk: Uint8Array): Promise<void>
  /**
   * Checks the whole, syncs it, and returns its mark; the live store is untouched.
   * @throws when it does not check out.
   */
  finish(): Promise<StorePosition>
  /** Makes the received store the live one, durably; readers of the old one must have ended. */
  swap(): Promise<void>
  abandon(): Promise<void>
}

/**
 * How far apply has got: `applied` in memory, `persisted` in the store. The log may be cut only
 * below `persisted`.
 */
export interface ApplyProgress {
  readonly applied: Index
  readonly persisted: Index
}
