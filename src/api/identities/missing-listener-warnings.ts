import type { Identity } from '../../entities/kinds/identity.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Clock } from '../../lib/clock.ts'
import { KeyedTokenBuckets, TokenBucket } from '../../lib/bounds/keyed-token-buckets.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { StateView } from '../../ports/state-view.ts'
import { missingListenerLogLimits } from './limits.ts'

export interface MissingListenerWarningsDeps {
  readonly state: Pick<StateView, 'isRouterOnline' | 'mayServeClients'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly logger: Pick<ServiceLogger, 'warn'>
}

const {
  listenerWarningsBurst,
  listenerWarningsPerSecond,
  listenerWarningIntervalMs,
  listenerWarningIdentitiesMax,
} = missingListenerLogLimits

/**
 * Logs that a client cannot connect to any of the edge routers in its response, because none of
 * those that are online has an edge listener. The client itself reports only that it has found no
 * router.
 */
export class MissingListenerWarnings {
  readonly #deps: MissingListenerWarningsDeps
  readonly #ofIdentity: KeyedTokenBuckets
  readonly #all: TokenBucket

  constructor(deps: MissingListenerWarningsDeps) {
    this.#deps = deps
    const rate = { burst: 1, perSecond: 1000 / listenerWarningIntervalMs }
    this.#ofIdentity = new KeyedTokenBuckets(
      { ...rate, keysMax: listenerWarningIdentitiesMax },
      deps.clock,
    )
    const burst = listenerWarningsBurst
    this.#all = new TokenBucket({ burst, perSecond: listenerWarningsPerSecond }, deps.clock)
  }

  /** @param routers the routers in the response that the client receives. */
  check(identity: Identity, routers: readonly EntityRecord[]): void {
    const { state, logger } = this.#deps
    const online = routers.filter(({ id }) => state.isRouterOnline(id))
    const isReachable = online.some(({ id }) => id === identity.id || state.mayServeClients(id))
    if (online.length === 0 || isReachable) return
    if (!this.#ofIdentity.take(identity.id) || !this.#all.take()) return
    const names = online.slice(0, listenerWarningsBurst).map(({ name }) => name)
    logger.warn(
      { identityId: identity.id, identity: identity.name, routers: names },
      'a client cannot connect to any of its edge routers: none that is online has an edge listener; add one with binding: edge',
    )
  }
}
