import type { Clock } from '../lib/clock.ts'
import { FAILED_MEMBER_AVOIDANCE_MS } from './waits.ts'

/** The members of a cluster, in the order in which a client tries them. */
export class MemberOrder {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #onChange: () => void
  /** Monotonic time of the last failure, by origin. */
  readonly #failedAtMs = new Map<string, number>()
  #origins: readonly string[] = []
  #current: string

  /**
   * @param onChange called when a different member answers, and when a member begins or ceases to
   * fail.
   */
  constructor(
    origins: readonly string[],
    clock: Pick<Clock, 'monotonicMs'>,
    onChange: () => void = () => undefined,
  ) {
    this.#clock = clock
    this.#onChange = onChange
    this.#current = origins[0] ?? ''
    this.follow(origins)
  }

  /** The member that answered last, `https://host:port`. */
  get current(): string {
    return this.#current
  }

  /** Members that have not answered since they failed. */
  get failed(): readonly string[] {
    return [...this.#failedAtMs.keys()]
  }

  /** Replaces the members; the current one stays until another one answers. */
  follow(origins: readonly string[]): void {
    this.#origins = origins
  }

  /** The current member, then the others, then those that failed recently. */
  order(): readonly string[] {
    const all = [...new Set([this.#current, ...this.#origins])].filter((origin) => origin !== '')
    const nowMs = this.#clock.monotonicMs()
    const isAvoided = (origin: string): boolean => {
      const failedAtMs = this.#failedAtMs.get(origin)
      return failedAtMs !== undefined && nowMs - failedAtMs < FAILED_MEMBER_AVOIDANCE_MS
    }
    return [...all.filter((origin) => !isAvoided(origin)), ...all.filter(isAvoided)]
  }

  fail(origin: string): void {
    this.#failedAtMs.set(origin, this.#clock.monotonicMs())
    this.#onChange()
  }

  /** @param isFirst whether the client tries this member first in the future. */
  succeed(origin: string, isFirst: boolean): void {
    const wasFailed = this.#failedAtMs.delete(origin)
    const isOther = isFirst && origin !== this.#current
    if (isOther) this.#current = origin
    if (wasFailed || isOther) this.#onChange()
  }
}
