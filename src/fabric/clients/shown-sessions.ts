import type { Clock } from '../../lib/clock.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { PostureReport } from '../../ports/posture.ts'
import type {
  ClientClaim,
  ClaimDecision,
  RouterClients,
  ShownClient,
} from '../../ports/router-clients.ts'
import { evaluateAtLatest } from '../judged-at-latest.ts'
import { routerLimits } from '../limits.ts'
import { RefusedClaims } from './refused-claims.ts'

const { sessionsShownMax, sessionsShownPerRouterMax } = routerLimits

/**
 * Decides about claims, and stores the tokens of valid ones. A service session has a different
 * token for each request, and older routers identify it by the token that the client presented.
 */
export class ShownSessions implements Pick<RouterClients, 'judge' | 'report'> {
  readonly #clients: Pick<RouterClients, 'judge' | 'report'>
  readonly #reads: Pick<LatestReads, 'reachLatest'>
  readonly #refused: RefusedClaims
  /** Tokens by router and session, oldest first. */
  readonly #byRouter = new Map<string, Map<string, string>>()
  #count = 0

  constructor(
    clients: Pick<RouterClients, 'judge' | 'report'>,
    reads: Pick<LatestReads, 'reachLatest'>,
    clock: Pick<Clock, 'monotonicMs'>,
  ) {
    this.#clients = clients
    this.#reads = reads
    this.#refused = new RefusedClaims(clock)
  }

  /** @throws {Problem} when too many log entries of the client were rejected recently. */
  async judge(claim: ClientClaim): Promise<ClaimDecision> {
    if (claim.type === 'Bind') this.#refused.beginEntry(claim)
    const judged = await evaluateAtLatest(
      this.#reads,
      () => this.#clients.judge(claim),
      ({ ok }) => !ok && this.#refused.isWorthAnotherLook(claim),
    )
    if (!judged.ok) this.#refused.charge(claim, judged.fault)
    else if (claim.sessionToken !== '') {
      this.#note(claim.routerId, judged.client.sessionId, claim.sessionToken)
    }
    return judged
  }

  /**
   * Passes on a report; the client may have logged in at another controller just before.
   * @throws {Problem} as `RouterClients.report`, and when the client reports too often.
   */
  async report(client: ShownClient, reports: readonly PostureReport[]): Promise<boolean> {
    this.#refused.beginReport(client)
    const isTaken = await evaluateAtLatest(
      this.#reads,
      () => this.#clients.report(client, reports),
      (taken) => !taken && this.#refused.isWorthAnotherLook(client),
    )
    if (!isTaken) this.#refused.charge(client, 'apiSession')
    return isTaken
  }

  /** A log entry for a valid claim was rejected. */
  onEntryRefused(claim: Pick<ClientClaim, 'routerId' | 'apiSessionToken'>): void {
    this.#refused.chargeEntry(claim)
  }

  /** Removes and returns the token that a router presented for a session; null if there is none. */
  take(routerId: string, sessionId: string): string | null {
    const own = this.#byRouter.get(routerId)
    const token = own?.get(sessionId)
    if (own === undefined || token === undefined) return null
    own.delete(sessionId)
    this.#count -= 1
    if (own.size === 0) this.#byRouter.delete(routerId)
    return token
  }

  forget(routerId: string): void {
    this.#count -= this.#byRouter.get(routerId)?.size ?? 0
    this.#byRouter.delete(routerId)
  }

  #note(routerId: string, sessionId: string, token: string): void {
    this.take(routerId, sessionId)
    const own = this.#byRouter.get(routerId) ?? new Map<string, string>()
    if (own.size >= sessionsShownPerRouterMax || this.#count >= sessionsShownMax) {
      const [oldest] = own.keys()
      // If the router itself has no token to drop, nothing is dropped at the expense of other
      // routers.
      if (oldest === undefined) return
      own.delete(oldest)
      this.#count -= 1
    }
    own.set(sessionId, token)
    this.#byRouter.set(routerId, own)
    this.#count += 1
  }
}
