/**
 * State that is live rather than kept: presence, session activity, posture, router links. It travels between
 * controllers beside the log, never through it. A value belongs to its owner; a newer (epoch, sequence) replaces an
 * older one; silence past the TTL removes it.
 */
export interface SoftState<T> {
  publish(key: string, value: T): void
  withdraw(key: string): void
  get(key: string): T | undefined
}
