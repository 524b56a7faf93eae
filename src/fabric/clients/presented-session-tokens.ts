import type { Clock } from '../../lib/clock.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { PostureReport } from '../../ports/posture.ts'
import type {
  ClientAccessRequest,
  ClientAccessDecision,
  RouterClients,
  ReportedClient,
} from '../../ports/router-clients.ts'
import { evaluateAgainBeforeRefusal } from '../evaluate-again-before-refusal.ts'
import { routerLimits } from '../limits.ts'
import { RefusedAccessCounter } from './refused-access-counter.ts'

const { sessionsShownMax, sessionsShownPerRouterMax } = routerLimits

/**
 * Decides about access requests of clients, and stores the session tokens of those that are
 * granted. A service session can have several tokens, and older routers identify the session by the
 * token that the client presented.
 */
export class PresentedSessionTokens implements Pick<RouterClients, 'judge' | 'report'> {
  readonly #clients: Pick<RouterClients, 'judge' | 'report'>
  readonly #reads: Pick<LatestReads, 'reachLatest'>
  readonly #refused: RefusedAccessCounter
  /** Tokens by router ID and session ID, oldest first. */
  readonly #byRouter = new Map<string, Map<string, string>>()
  #count = 0

  constructor(
    clients: Pick<RouterClients, 'judge' | 'report'>,
    reads: Pick<LatestReads, 'reachLatest'>,
    clock: Pick<Clock, 'monotonicMs'>,
  ) {
    this.#clients = clients
    this.#reads = reads
    this.#refused = new RefusedAccessCounter(clock)
  }

  /**
   * @throws {Problem} for a request to host, when too many log entries of the client were rejected
   * recently.
   */
  async judge(claim: ClientAccessRequest): Promise<ClientAccessDecision> {
    if (claim.type === 'Bind') this.#refused.beginEntry(claim)
    const judged = await evaluateAgainBeforeRefusal(
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
   * Forwards a posture report. If it fails, tries again with the latest state, because the client
   * may just have logged in at another controller.
   * @throws {Problem} see `RouterClients.report`; also when the client reports too often.
   */
  async report(client: ReportedClient, reports: readonly PostureReport[]): Promise<boolean> {
    this.#refused.beginReport(client)
    const isTaken = await evaluateAgainBeforeRefusal(
      this.#reads,
      () => this.#clients.report(client, reports),
      (taken) => !taken && this.#refused.isWorthAnotherLook(client),
    )
    if (!isTaken) this.#refused.charge(client, 'apiSession')
    return isTaken
  }

  /** Called when the entry of a granted request was rejected, or is too large for the log. */
  onEntryRefused(claim: Pick<ClientAccessRequest, 'routerId' | 'apiSessionToken'>): void {
    this.#refused.chargeEntry(claim)
  }

  /**
   * Removes and returns the token that a client presented at a router for a session; null if there
   * is none.
   */
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
      // A full store evicts only tokens of the same router. If there are none, the new token is not
      // stored, so that one router cannot evict the tokens of others.
      if (oldest === undefined) return
      own.delete(oldest)
      this.#count -= 1
    }
    own.set(sessionId, token)
    this.#byRouter.set(routerId, own)
    this.#count += 1
  }
}
