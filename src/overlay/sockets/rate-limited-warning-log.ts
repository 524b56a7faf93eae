import { KeyedTokenBuckets } from '../../lib/bounds/keyed-token-buckets.ts'
import type { Clock } from '../../lib/clock.ts'
import { socketLimits } from './limits.ts'
import type { ProgramLogger } from '../logger.ts'

const { failureLoggedEveryMs, failureKindsMax } = socketLimits

/**
 * Limits the rate of warnings that clients can cause, with a separate limit for each kind of
 * warning.
 */
export class RateLimitedWarningLog {
  readonly #log: Pick<ProgramLogger, 'warn'>
  readonly #rate: KeyedTokenBuckets

  constructor(log: Pick<ProgramLogger, 'warn'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#log = log
    const perSecond = 1000 / failureLoggedEveryMs
    this.#rate = new KeyedTokenBuckets({ burst: 1, perSecond, keysMax: failureKindsMax }, clock)
  }

  warn(place: string, failure: string, fields: Readonly<Record<string, unknown>>): void {
    this.warnOf(place, failure, { listener: place, ...fields })
  }

  /**
   * Logs a warning about a subject. @param subject each pair of subject and failure has its own
   * limit; the fields identify the subject in the log.
   */
  warnOf(subject: string, failure: string, fields: Readonly<Record<string, unknown>>): void {
    if (this.#rate.take(`${subject} ${failure}`)) this.#log.warn(fields, failure)
  }
}
