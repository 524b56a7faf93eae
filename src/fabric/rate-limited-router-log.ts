import type { Clock } from '../lib/clock.ts'
import { KeyedTokenBuckets } from '../lib/bounds/keyed-token-buckets.ts'
import { routerLimits } from './limits.ts'
import type { RouterLogger } from './router-channels.ts'

/**
 * A logger that limits the number of warnings about each router, because a faulty router can cause
 * any number of them.
 */
export function perRouterRateLimitedLogger(
  log: RouterLogger,
  clock: Pick<Clock, 'monotonicMs'>,
): RouterLogger {
  const rate = new KeyedTokenBuckets(
    {
      burst: routerLimits.routerWarningsBurst,
      perSecond: routerLimits.routerWarningsPerSecond,
      keysMax: routerLimits.routerRatesMax,
    },
    clock,
  )
  return {
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => {
      const { routerId } = fields
      // @guard reports-of-a-router--warnings
      if (typeof routerId !== 'string' || rate.take(routerId)) log.warn(fields, message)
    },
  }
}
