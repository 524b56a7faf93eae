import { newClusterKey } from '../../src/pki/secrets/cluster-key.ts'
import type { TokenKey, TokenKeys } from '../../src/ports/token-keys.ts'

/** Token keys that a test controls: it rotates them, and can delay their arrival. */
export class TestTokenKeys implements TokenKeys {
  #keys: readonly TokenKey[] = [
    { version: 1, secret: newClusterKey(), overlapEndsAtMs: null, isExposed: false },
  ]
  #arriving: readonly TokenKey[] | null = null
  #factorKeys: readonly TokenKey[] = [
    { version: 1, secret: newClusterKey(), overlapEndsAtMs: null, isExposed: false },
  ]
  refreshes = 0

  clusterKeys(): readonly TokenKey[] {
    return this.#keys
  }

  factorKeys(): readonly TokenKey[] {
    return this.#factorKeys
  }

  /** Activates the next version; earlier versions remain if `kept` returns true, as by default. */
  rotateFactorKey(atMs: number, kept: (version: number) => boolean = () => true): void {
    const version = (this.#factorKeys.at(-1)?.version ?? 0) + 1
    const before = this.#factorKeys
      .filter((key) => kept(key.version))
      .map((key) => ({ ...key, overlapEndsAtMs: key.overlapEndsAtMs ?? atMs }))
    this.#factorKeys = [
      ...before,
      { version, secret: newClusterKey(), overlapEndsAtMs: null, isExposed: false },
    ]
  }

  refresh(): Promise<void> {
    this.refreshes += 1
    if (this.#arriving !== null) this.#keys = this.#arriving
    this.#arriving = null
    return Promise.resolve()
  }

  /**
   * Activates the next version; the previous ones end at the given time at the latest, or are
   * removed immediately for null.
   */
  rotate(overlapEndsAtMs: number | null): void {
    this.#keys = this.#rotated(overlapEndsAtMs)
  }

  /**
   * Like `rotate`, but on another controller: the new key arrives here with the next refresh.
   * @returns the keys of the other controller.
   */
  rotateElsewhere(overlapEndsAtMs: number | null): readonly TokenKey[] {
    this.#arriving = this.#rotated(overlapEndsAtMs)
    return this.#arriving
  }

  /** Sets the keys that the next refresh returns. */
  arrive(keys: readonly TokenKey[]): void {
    this.#arriving = keys
  }

  set(keys: readonly TokenKey[]): void {
    this.#keys = keys
  }

  #rotated(overlapEndsAtMs: number | null): readonly TokenKey[] {
    const version = (this.#keys.at(-1)?.version ?? 0) + 1
    const before =
      overlapEndsAtMs === null
        ? []
        : this.#keys.map((key) => ({
            ...key,
            overlapEndsAtMs: Math.min(key.overlapEndsAtMs ?? overlapEndsAtMs, overlapEndsAtMs),
          }))
    return [
      ...before,
      { version, secret: newClusterKey(), overlapEndsAtMs: null, isExposed: false },
    ]
  }
}
