import type { NodeId } from '../raft/types.ts'

/**
 * A topic: what its values are on the wire, how long they outlive their owner, and what one owner
 * may take.
 */
export interface SoftTopicDefinition<T> {
  /** Deterministic; at most {@link SOFT_VALUE_BYTES_MAX}. */
  encode(value: T): Uint8Array
  /** @throws on bytes that are none; they are dropped, and the value before them stays. */
  decode(bytes: Uint8Array): T
  /**
   * An owner from which nothing was heard for so long has no values. The channel speaks every
   * second.
   */
  readonly ttlMs: number
  /** Keys and values of one owner, with {@link SOFT_VALUE_OVERHEAD_BYTES} each. */
  readonly ownerBytesMax: number
  /**
   * Marks what the cluster itself lives by: it goes before all other values, and is never refused
   * for what other topics take. Its own cap is at most {@link SOFT_VITAL_BYTES_MAX}.
   */
  readonly isVital?: boolean
}

/** Topics by the name that they have on the wire, which is at most 64 characters. */
export type SoftTopicTable = Readonly<Record<string, SoftTopicDefinition<unknown>>>

export type SoftTopicValue<D> = D extends SoftTopicDefinition<infer T> ? T : never

/** Counts of values heard of other controllers and not kept, since the start. */
export interface SoftStateCounts {
  /** Keys and values that are held, of all owners. */
  readonly bytes: number
  /** Values of topics that only a newer release has. */
  readonly unknownTopics: number
  /** Values that are no messages of their topic. */
  readonly malformed: number
  /** Values beyond the cap of their owner or of this controller. */
  readonly tooLarge: number
}

export interface SoftValue<T> {
  readonly owner: NodeId
  readonly key: string
  readonly value: T
}

export type SoftListener<T> = (owner: NodeId, key: string, value: T | undefined, lost?: T) => void

export interface SoftTopic<T> {
  /**
   * @returns false when it does not fit under the cap of an owner; nothing has changed then. Keys:
   * 128 characters.
   */
  publish(key: string, value: T): boolean
  /** Withdraws what this controller published under that key. */
  withdraw(key: string): void
  get(owner: NodeId, key: string): T | undefined
  /** Values of this controller and all others, in no order. */
  values(): Iterable<SoftValue<T>>
  /**
   * Called for what others publish, at once for what they have published already; `undefined`:
   * withdrawn, or `lost` with the value that it had: its owner is silent past the TTL, has started
   * again without it, or is no member any longer.
   */
  onChange(listener: SoftListener<T>): void
}

/** The shortest TTL: one outlives a few lost notes. */
export const SOFT_TTL_MS_MIN = 3000
/** So that a batch always has room for one. */
export const SOFT_VALUE_BYTES_MAX = 32 * 1024
export const SOFT_VITAL_BYTES_MAX = 64 * 1024
/** Bytes that a value counts for beside its key and its own. */
export const SOFT_VALUE_OVERHEAD_BYTES = 32
