import { KeyedCounts } from '../../lib/bounds/keyed-counts.ts'
import { KeyedTokenBuckets } from '../../lib/bounds/keyed-token-buckets.ts'
import type { Clock } from '../../lib/clock.ts'
import type { AdmittedClient } from '../../ports/router-clients.ts'
import { routerLimits } from '../limits.ts'
import { CircuitRefusedError } from './admit-dial.ts'
import type { CircuitTable } from './circuit-table.ts'
import { edgeErrorCode } from '../../channel/messages/edge.ts'

const { circuitsWaitingMax, routerRatesMax, circuitClientsMax } = routerLimits

export interface CircuitRequestLimiterDeps {
  readonly table: Pick<CircuitTable, 'hasRoomFor' | 'isFull'>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/**
 * Limits the concurrent circuit requests of each router, and the rate of requests of each router
 * and, over all routers, of each client. A router is identified by its certificate, so it cannot
 * exceed its limit by presenting other sessions.
 */
export class CircuitRequestLimiter {
  readonly #table: CircuitRequestLimiterDeps['table']
  readonly #ofRouters: KeyedTokenBuckets
  readonly #ofClients: KeyedTokenBuckets
  /** Number of circuits that are being created, by ingress router. */
  readonly #waiting = new KeyedCounts()

  constructor({ table, clock }: CircuitRequestLimiterDeps) {
    this.#table = table
    const { circuitsOfRouterBurst, circuitsOfRouterPerSecond } = routerLimits
    const ofRouter = { burst: circuitsOfRouterBurst, perSecond: circuitsOfRouterPerSecond }
    this.#ofRouters = new KeyedTokenBuckets({ ...ofRouter, keysMax: routerRatesMax }, clock)
    const { circuitsOfClientBurst, circuitsOfClientPerSecond } = routerLimits
    const ofClient = { burst: circuitsOfClientBurst, perSecond: circuitsOfClientPerSecond }
    this.#ofClients = new KeyedTokenBuckets({ ...ofClient, keysMax: circuitClientsMax }, clock)
  }

  /**
   * Counts the request as pending until `end`.
   * @throws {CircuitRefusedError} when too many requests of the router are pending, or the circuit
   * table is full.
   */
  begin(routerId: string): void {
    // @guard circuits-of-one-router--waiting
    if (this.#waiting.of(routerId) >= circuitsWaitingMax || this.#table.isFull) {
      throw new CircuitRefusedError(edgeErrorCode.internal, 'too many circuits')
    }
    this.#waiting.add(routerId, 1)
  }

  end(routerId: string): void {
    this.#waiting.add(routerId, -1)
  }

  /**
   * @throws {CircuitRefusedError} when the client or its router exceeds its rate or its share of
   * the open circuits.
   */
  admit(routerId: string, { identityId }: Pick<AdmittedClient, 'identityId'>): void {
    if (!this.#table.hasRoomFor(routerId, identityId)) {
      throw new CircuitRefusedError(edgeErrorCode.internal, 'too many circuits')
    }
    // A router that dials for itself has only the router's limit. A request above a client's limit
    // does not count against its router.
    // @guard circuits-of-one-router--client
    if (identityId !== routerId && !this.#ofClients.take(identityId)) {
      throw new CircuitRefusedError(
        edgeErrorCode.internal,
        'the client asks for circuits too often',
      )
    }
    // @guard circuits-of-one-router--router
    if (!this.#ofRouters.take(routerId)) {
      throw new CircuitRefusedError(
        edgeErrorCode.internal,
        'the router asks for circuits too often',
      )
    }
  }
}
