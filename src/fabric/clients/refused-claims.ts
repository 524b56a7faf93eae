import { createHash } from 'node:crypto'

import { Quota } from '../../lib/bounds/quota.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { ClaimFault, ClientClaim } from '../../ports/router-clients.ts'
import { routerLimits } from '../limits.ts'

const { refusedClaimsOfRouterMax, refusedClaimsOfSessionMax, refusedClaimsMax } = routerLimits
const { refusedEntriesOfSessionMax, postureReportsOfSessionMax } = routerLimits
const WINDOW_MS = 60_000

type Claim = Pick<ClientClaim, 'routerId' | 'apiSessionToken'>

/**
 * Counts refused claims and rejected log entries. An invalid API session counts against the router,
 * because routers receive the list of valid sessions. Everything else counts against the client,
 * identified by its API session, so it does not affect the router or its other clients.
 */
export class RefusedClaims {
  readonly #ofRouters: Quota
  readonly #ofSessions: Quota
  readonly #entries: Quota
  readonly #reports: Quota

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    const limits = { allMax: refusedClaimsMax, windowMs: WINDOW_MS }
    this.#ofRouters = new Quota({ ...limits, ofOneMax: refusedClaimsOfRouterMax }, clock)
    this.#ofSessions = new Quota({ ...limits, ofOneMax: refusedClaimsOfSessionMax }, clock)
    this.#entries = new Quota({ ...limits, ofOneMax: refusedEntriesOfSessionMax }, clock)
    this.#reports = new Quota({ ...limits, ofOneMax: postureReportsOfSessionMax }, clock)
  }

  /**
   * Whether a refused claim may be checked again with the latest state, which costs the leader a
   * round trip to a majority.
   */
  isWorthAnotherLook(claim: Claim): boolean {
    // @guard claims-of-hosts--client, claims-of-hosts--router
    return this.#ofRouters.hasLeft(claim.routerId) && this.#ofSessions.hasLeft(keyOf(claim))
  }

  charge(claim: Claim, fault: ClaimFault): void {
    // @guard claims-of-hosts--others
    if (fault === 'apiSession') this.#ofRouters.take(claim.routerId)
    else this.#ofSessions.take(keyOf(claim))
  }

  /** @throws {Problem} when too many entries of the client were rejected. */
  beginEntry(claim: Claim): void {
    if (!this.#entries.hasLeft(keyOf(claim))) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  }

  /**
   * Counts a report. Reports are sent to all controllers, so each one costs all of them.
   * @throws {Problem} when the client has reported too often.
   */
  beginReport(client: Claim): void {
    if (!this.#reports.take(keyOf(client))) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  }

  chargeEntry(claim: Claim): void {
    this.#entries.take(keyOf(claim))
  }
}

/** A hash, because the token is secret and the router chooses its length. */
function keyOf({ routerId, apiSessionToken }: Claim): string {
  return `${routerId} ${createHash('sha256').update(apiSessionToken).digest('base64')}`
}
