import type { NodeId } from '../raft/types.ts'

/**
 * State that is live rather than kept: presence, session activity, posture, router links. It travels between
 * controllers beside the log, never through it. Each controller writes values of its own only; a newer (epoch,
 * sequence) of an owner replaces an older one. Nothing in it compares the clocks of two machines.
 */
export interface SoftState {
  /**
   * One caller a topic; the same topic must mean the same on every controller. A topic that is made late still gets
   * what the others had before. Names are at most 64 characters.
   */
  topic<T>(options: SoftTopicOptions<T>): SoftTopic<T>
}

export interface SoftTopicOptions<T> {
  readonly name: string
  /** Deterministic; at most {@link SOFT_VALUE_BYTES_MAX}. */
  encode(value: T): Uint8Array
  /** @throws on bytes that are none; they are dropped, and the value before them stays. */
  decode(bytes: Uint8Array): T
  /** An owner from which nothing was heard for so long has no values. The channel speaks every second. */
  readonly ttlMs: number
  /** Keys and values of one owner, with {@link SOFT_VALUE_OVERHEAD_BYTES} each. */
  readonly ownerBytesMax: number
  /**
   * What the cluster itself lives by: it goes before all that waits to be told, and is never refused for what other topics
   * take. Its own cap is at most {@link SOFT_VITAL_BYTES_MAX}.
   */
  readonly isVital?: boolean
}

export interface SoftValue<T> {
  readonly owner: NodeId
  readonly key: string
  readonly value: T
}

export interface SoftTopic<T> {
  /** @returns false when it does not fit under the cap of an owner; nothing has changed then. Keys: 128 characters. */
  publish(key: string, value: T): boolean
  /** What this controller published under that key is no more. */
  withdraw(key: string): void
  get(owner: NodeId, key: string): T | undefined
  /** Of this controller and all others, in no order. */
  values(): Iterable<SoftValue<T>>
  /** Called for what others publish; `undefined`: withdrawn, its owner silent past the TTL, or no member any longer. */
  onChange(listener: (owner: NodeId, key: string, value: T | undefined) => void): void
}

/** The shortest TTL: one outlives a few lost notes. */
export const SOFT_TTL_MS_MIN = 3000
/** So that a batch always has room for one. */
export const SOFT_VALUE_BYTES_MAX = 32 * 1024
export const SOFT_VITAL_BYTES_MAX = 64 * 1024
/** What a value counts for beside its key and bytes. */
export const SOFT_VALUE_OVERHEAD_BYTES = 32
