import { KeyedRate } from '../../lib/bounds/keyed-rate.ts'
import type { Clock } from '../../lib/clock.ts'
import { routerProgramLimits } from '../limits.ts'
import type { RouterProgramLogger } from '../logger.ts'

const { failureLoggedEveryMs, failureKindsMax } = routerProgramLimits

/** Warnings of listeners: each kind comes rarely, as clients can cause it as often as they like. */
export class FailureLog {
  readonly #log: Pick<RouterProgramLogger, 'warn'>
  readonly #rate: KeyedRate

  constructor(log: Pick<RouterProgramLogger, 'warn'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#log = log
    const perSecond = 1000 / failureLoggedEveryMs
    this.#rate = new KeyedRate({ burst: 1, perSecond, keysMax: failureKindsMax }, clock)
  }

  warn(place: string, failure: string, fields: Readonly<Record<string, unknown>>): void {
    if (this.#rate.take(`${place} ${failure}`))
      this.#log.warn({ listener: place, ...fields }, failure)
  }
}
