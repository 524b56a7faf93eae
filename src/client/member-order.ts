import type { Clock } from '../lib/clock.ts'
import { FAILED_MEMBER_AVOIDANCE_MS } from './timeouts.ts'

/** The members of a cluster, in the order in which a client tries them. */
export class MemberOrder {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #onChange: () => void
  /** Monotonic ms of the last failure, by origin. */
  readonly #failedAtMs = new Map<string, number>()
  #origins: readonly string[] = []
  #current: string

  /**
   * @param onChange called when another member becomes the current one, at each failure of a
   * member, and when a failed member succeeds.
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

  /**
   * The member that the client prefers, `https://host:port`: the first one, until `succeed` selects
   * another.
   */
  get current(): string {
    return this.#current
  }

  /** Members that have not responded since they failed. */
  get failed(): readonly string[] {
    return [...this.#failedAtMs.keys()]
  }

  /** Replaces the list of members. The current member stays until another member responds. */
  follow(origins: readonly string[]): void {
    this.#origins = origins
  }

  /**
   * All members in the order to try them: the current one, then the others; those that failed
   * recently come last.
   */
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

  /** @param isFirst whether the client should try this member first from now on. */
  succeed(origin: string, isFirst: boolean): void {
    const wasFailed = this.#failedAtMs.delete(origin)
    const isOther = isFirst && origin !== this.#current
    if (isOther) this.#current = origin
    if (wasFailed || isOther) this.#onChange()
  }
}
