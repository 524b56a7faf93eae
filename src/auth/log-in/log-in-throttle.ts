import type { Clock } from '../../lib/clock.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { Problem } from '../../lib/problems.ts'
import { sourceNetwork } from '../../lib/bounds/source-network.ts'

interface Attempts {
  failures: number
  atWork: number
  pausedUntilMs: number
}

interface ThrottleLimits {
  readonly failuresMax: number
  readonly pauseMsMin: number
  readonly pauseMsMax: number
  readonly sourcesMax: number
  /** Maximum concurrent attempts; one source cannot occupy all of them. */
  readonly attemptsMax: number
}

/** A throttle with the limits of the API. */
export function createLogInThrottle({
  limits,
  clock,
}: {
  readonly limits: {
    readonly logInFailuresMax: number
    readonly logInPauseMsMin: number
    readonly logInPauseMsMax: number
    readonly logInSourcesMax: number
    readonly logInsMax: number
  }
  readonly clock: Clock
}): LogInThrottle {
  return new LogInThrottle(
    {
      failuresMax: limits.logInFailuresMax,
      pauseMsMin: limits.logInPauseMsMin,
      pauseMsMax: limits.logInPauseMsMax,
      sourcesMax: limits.logInSourcesMax,
      attemptsMax: limits.logInsMax,
    },
    clock,
  )
}

/**
 * Slows down password guessing: after `failuresMax` consecutive failures, one pair of user name and
 * source waits `pauseMsMin`; each further failure doubles the pause, up to `pauseMsMax`. Counting
 * by source prevents locking out other users; counting in memory costs no write.
 */
export class LogInThrottle {
  readonly #limits: ThrottleLimits
  readonly #clock: Clock
  readonly #atWork: FairShare
  /** Attempts by source and user name, in order of last use. */
  readonly #sources = new Map<string, Attempts>()

  constructor(limits: ThrottleLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
    this.#atWork = new FairShare(limits.attemptsMax)
  }

  /**
   * Runs one attempt. Running attempts count as failed until they succeed, so that concurrent
   * guesses cannot exceed the limit.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS during a pause, and when too many attempts run, from
   * this source or in total.
   */
  async attempt<T>(
    username: string,
    address: string,
    run: () => Promise<T | null>,
  ): Promise<T | null> {
    const source = sourceNetwork(address)
    const key = `${source} ${username}`
    const attempts = this.#sources.get(key) ?? { failures: 0, atWork: 0, pausedUntilMs: 0 }
    this.#check(attempts)
    if (!this.#atWork.hasRoomFor(source)) throw tooMany('too many concurrent log-ins', 1)
    this.#remember(key, attempts)
    attempts.atWork += 1
    this.#atWork.take(source)
    try {
      const result = await run()
      if (result === null) this.#fail(attempts)
      else attempts.failures = 0
      return result
    } finally {
      this.#atWork.giveBack(source)
      attempts.atWork -= 1
      if (attempts.failures === 0 && attempts.atWork === 0 && this.#sources.get(key) === attempts) {
        this.#sources.delete(key)
      }
    }
  }

  #check(attempts: Attempts): void {
    const waitMs = attempts.pausedUntilMs - this.#clock.monotonicMs()
    if (waitMs > 0) throw tooMany('too many failed log-ins', Math.ceil(waitMs / 1000))
    const isCrowded = attempts.failures + attempts.atWork >= this.#limits.failuresMax
    // After a pause, only one attempt at a time is allowed; another failure doubles the pause.
    if (!isCrowded || attempts.atWork === 0) return
    throw tooMany('too many concurrent log-ins with this user name', 1)
  }

  #fail(attempts: Attempts): void {
    attempts.failures += 1
    const beyond = attempts.failures - this.#limits.failuresMax
    if (beyond < 0) return
    const pauseMs = Math.min(
      this.#limits.pauseMsMin * 2 ** Math.min(beyond, 30),
      this.#limits.pauseMsMax,
    )
    attempts.pausedUntilMs = this.#clock.monotonicMs() + pauseMs
  }

  #remember(key: string, attempts: Attempts): void {
    this.#sources.delete(key)
    this.#sources.set(key, attempts)
    if (this.#sources.size <= this.#limits.sourcesMax) return
    for (const [oldest] of this.#sources) {
      this.#sources.delete(oldest)
      return
    }
  }
}

/**
 * An error that names the exceeded limit, so that the user learns whether wrong passwords are the
 * reason.
 */
function tooMany(what: string, seconds: number): Problem {
  const detail = `${what} from this source; retry in ${seconds} s`
  return new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: seconds, detail })
}
