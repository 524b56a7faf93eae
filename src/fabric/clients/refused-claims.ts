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
 * Claims that were refused, and entries of the log that were, by who made them. An API session that
 * is none is the router's own claim, as it is told which there are. All else is that of the client,
 * which is known by its API session, and costs its router and the others there nothing.
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
   * Whether a claim that does not hold is worth another look at the latest commit, which costs the
   * leader a round to a majority.
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

  /** @throws {Problem} when so many entries were refused that no more is made. */
  beginEntry(claim: Claim): void {
    if (!this.#entries.hasLeft(keyOf(claim))) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  }

  /**
   * A report goes on to all controllers, and costs each of them.
   * @throws {Problem} when it has reported so often lately that no more is taken.
   */
  beginReport(client: Claim): void {
    if (!this.#reports.take(keyOf(client))) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  }

  chargeEntry(claim: Claim): void {
    this.#entries.take(keyOf(claim))
  }
}

/** A token is as long as its router likes, and is a secret. */
function keyOf({ routerId, apiSessionToken }: Claim): string {
  return `${routerId} ${createHash('sha256').update(apiSessionToken).digest('base64')}`
}
