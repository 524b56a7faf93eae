import type { NodeId } from '../raft/types.ts'

/**
 * Definition of a soft-state topic: the encoding of its values, how long they stay valid after
 * their owner has fallen silent, and the maximum bytes of one owner.
 */
export interface SoftTopicDefinition<T> {
  /** Must be deterministic. The result has at most {@link SOFT_VALUE_BYTES_MAX} bytes. */
  encode(value: T): Uint8Array
  /**
   * Decodes a value.
   * @throws on invalid bytes. The receiver then ignores them and keeps the previous value.
   */
  decode(bytes: Uint8Array): T
  /**
   * If a controller is silent for this time, the other controllers drop its values of this topic. A
   * controller sends at least once per second.
   */
  readonly ttlMs: number
  /**
   * Maximum bytes of the keys and values that one controller publishes in this topic. Each value
   * counts {@link SOFT_VALUE_OVERHEAD_BYTES} bytes more than its key and content.
   */
  readonly ownerBytesMax: number
  /**
   * True for topics that the cluster itself needs. Controllers send them before all others, and
   * values of other topics never use the space reserved for them. Their limit is at most {@link
   * SOFT_VITAL_BYTES_MAX}.
   */
  readonly isVital?: boolean
}

/** Topics by their name on the wire, of at most 64 characters. */
export type SoftTopicTable = Readonly<Record<string, SoftTopicDefinition<unknown>>>

export type SoftTopicValue<D> = D extends SoftTopicDefinition<infer T> ? T : never

/**
 * Size of the soft state, and numbers of values from other controllers that this controller
 * rejected since its start.
 */
export interface SoftStateCounts {
  /** Total bytes of the keys and values of all owners. */
  readonly bytes: number
  /** Number of received values whose topic this release does not know. */
  readonly unknownTopics: number
  /** Number of received values that are not valid for their topic. */
  readonly malformed: number
  /** Number of received values beyond the limit of their owner or of this controller. */
  readonly tooLarge: number
}

/** A value of a topic, with the controller that publishes it. */
export interface SoftValue<T> {
  readonly owner: NodeId
  readonly key: string
  readonly value: T
}

/**
 * Called after a value changed. `value` is undefined if the value no longer exists; `onChange`
 * explains `lost`.
 */
export type SoftListener<T> = (owner: NodeId, key: string, value: T | undefined, lost?: T) => void

export interface SoftTopic<T> {
  /**
   * Publishes a value under a key of at most 128 characters.
   * @returns false when the value exceeds the limit of an owner; the topic is then unchanged.
   */
  publish(key: string, value: T): boolean
  /** Withdraws the value that this controller published under that key. */
  withdraw(key: string): void
  get(owner: NodeId, key: string): T | undefined
  /** Values of this controller and all others, in any order. */
  values(): Iterable<SoftValue<T>>
  /**
   * Calls the listener for values of other controllers, and immediately for those that exist.
   * `undefined`: the value no longer exists. If `lost` has the previous value, its owner did not
   * withdraw the value: the owner was silent longer than the TTL, restarted without the value, or
   * was removed.
   */
  onChange(listener: SoftListener<T>): void
}

/** The shortest TTL; it tolerates a few lost messages. */
export const SOFT_STATE_TTL_MS_MIN = 3000
/** Maximum bytes of a value, so that a batch always has room for one value. */
export const SOFT_VALUE_BYTES_MAX = 32 * 1024
export const SOFT_VITAL_BYTES_MAX = 64 * 1024
/** Bytes that each value counts toward limits in addition to its key and content. */
export const SOFT_VALUE_OVERHEAD_BYTES = 32
/** Maximum time to wait for the values of other controllers. */
export const SOFT_STATE_BARRIER_MS_MAX = 500
