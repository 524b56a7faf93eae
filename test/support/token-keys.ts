import { newClusterKey } from '../../src/pki/secrets/cluster-key.ts'
import type { TokenKey, TokenKeys } from '../../src/ports/token-keys.ts'

/** The keys of tokens as a test has them: rotated on demand, and arriving late when it says so. */
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

  /** Activates the next version; those of the given numbers stay, or all. */
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

  /** Activates the next version; the previous ones end, or are dropped at once for null. */
  rotate(overlapEndsAtMs: number | null): void {
    this.#keys = this.#rotated(overlapEndsAtMs)
  }

  /** As `rotate`, on another controller: here after the next refresh. @returns the keys there. */
  rotateElsewhere(overlapEndsAtMs: number | null): readonly TokenKey[] {
    this.#arriving = this.#rotated(overlapEndsAtMs)
    return this.#arriving
  }

  /** Key that the next refresh returns. */
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
