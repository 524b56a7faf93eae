import { createHash } from 'node:crypto'

import { WindowedQuota } from '../../lib/bounds/quota.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { ClientAccessFault, ClientAccessRequest } from '../../ports/router-clients.ts'
import { routerLimits } from '../limits.ts'

const { refusedClaimsOfRouterMax, refusedClaimsOfSessionMax, refusedClaimsMax } = routerLimits
const { refusedEntriesOfSessionMax, postureReportsOfSessionMax } = routerLimits
const WINDOW_MS = 60_000

type Claim = Pick<ClientAccessRequest, 'routerId' | 'apiSessionToken'>

/**
 * Counts refused access requests, rejected log entries and posture reports. A request with an
 * invalid API session counts against the router, because routers know the valid sessions. Any other
 * refusal counts against the API session of the client, so that one client affects neither the
 * router nor its other clients.
 */
export class RefusedAccessCounter {
  readonly #ofRouters: WindowedQuota
  readonly #ofSessions: WindowedQuota
  readonly #entries: WindowedQuota
  readonly #reports: WindowedQuota

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    const limits = { allMax: refusedClaimsMax, windowMs: WINDOW_MS }
    this.#ofRouters = new WindowedQuota({ ...limits, ofOneMax: refusedClaimsOfRouterMax }, clock)
    this.#ofSessions = new WindowedQuota({ ...limits, ofOneMax: refusedClaimsOfSessionMax }, clock)
    this.#entries = new WindowedQuota({ ...limits, ofOneMax: refusedEntriesOfSessionMax }, clock)
    this.#reports = new WindowedQuota({ ...limits, ofOneMax: postureReportsOfSessionMax }, clock)
  }

  /**
   * Whether a refused request may be checked again with the latest state. Each such check costs the
   * leader a round trip to a majority.
   */
  isWorthAnotherLook(claim: Claim): boolean {
    // @guard claims-of-hosts--client, claims-of-hosts--router
    return this.#ofRouters.hasLeft(claim.routerId) && this.#ofSessions.hasLeft(keyOf(claim))
  }

  charge(claim: Claim, fault: ClientAccessFault): void {
    // @guard claims-of-hosts--others
    if (fault === 'apiSession') this.#ofRouters.take(claim.routerId)
    else this.#ofSessions.take(keyOf(claim))
  }

  /** @throws {Problem} when the log has rejected too many entries of the client. */
  beginEntry(claim: Claim): void {
    if (!this.#entries.hasLeft(keyOf(claim))) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  }

  /**
   * Counts a posture report. Reports are sent to all controllers, so each report costs work on all
   * of them.
   * @throws {Problem} when the client has sent too many reports.
   */
  beginReport(client: Claim): void {
    if (!this.#reports.take(keyOf(client))) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  }

  chargeEntry(claim: Claim): void {
    this.#entries.take(keyOf(claim))
  }
}

/** A hash of the token, because the token is secret and the router determines its length. */
function keyOf({ routerId, apiSessionToken }: Claim): string {
  return `${routerId} ${createHash('sha256').update(apiSessionToken).digest('base64')}`
}
