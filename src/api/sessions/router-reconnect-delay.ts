import { FairShare } from '../../lib/bounds/fair-share.ts'
import type { RecordOf } from '../../entities/kind-records.ts'
import type { Clock } from '../../lib/clock.ts'
import { waitUntil } from '../../lib/runtime/wait.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ApiSessionLimits } from './limits.ts'

type Router = RecordOf<'edgeRouter'>

export interface RouterReconnectDelayDeps {
  readonly clock: Clock
  readonly limits: ApiSessionLimits
  readonly state: Pick<StateView, 'servesClients' | 'mayServeClients' | 'isRouterOnline'>
}

/**
 * For the time `routerReturnMs` after the start of a controller, delays each service session by a
 * few seconds, until a router that the client can use has reconnected. After an outage of all
 * controllers, clients and routers reconnect at the same time. A client of OpenZiti's Go SDK that
 * gets a service session without a reachable router requests routers again only after at least
 * 30 s, and until then it hosts none of its services.
 *
 * Routers of OpenZiti 1.x report their addresses up to 10 s after they have reconnected. Until then
 * they do not read from the channel, because they call `HostedServiceRegistry.HandleReestablish`,
 * which sleeps, while they hold the lock of the channel.
 */
export class RouterReconnectDelay {
  readonly #deps: RouterReconnectDelayDeps
  readonly #endMs: number
  readonly #waiting: FairShare

  constructor(deps: RouterReconnectDelayDeps) {
    this.#deps = deps
    this.#endMs = deps.clock.monotonicMs() + deps.limits.routerReturnMs
    this.#waiting = new FairShare(deps.limits.routerReturnWaitersMax)
  }

  /**
   * Waits until one of the routers has an address for clients, or until none of them is expected to
   * reconnect. Does not wait if the controller started long ago, or if the caller's share of the
   * `routerReturnWaitersMax` waiting requests is used up.
   * @param caller ID of the identity that sent the request.
   * @param read reads the edge routers that the client may use; not called if the controller
   * started long ago.
   */
  async wait(caller: string, read: () => readonly Router[]): Promise<void> {
    const { clock, limits, state } = this.#deps
    const nowMs = clock.monotonicMs()
    if (nowMs >= this.#endMs || !this.#waiting.hasRoomFor(caller)) return
    // Reads the routers only once; each check then looks up only their live state, because many
    // clients wait in the seconds after a start.
    const enrolled = read().filter(({ isVerified, disabled }) => isVerified && !disabled)
    const patienceEndMs = nowMs + limits.routerReturnWaitMs
    const isOver = (): boolean => {
      if (enrolled.some(({ id }) => state.servesClients(id))) return true
      // A router that is offline, or has not reported its listeners yet, is still expected.
      const expected = enrolled.filter(({ id }) => state.mayServeClients(id))
      if (clock.monotonicMs() < patienceEndMs) return expected.length === 0
      return !expected.some(({ id }) => state.isRouterOnline(id))
    }
    if (isOver()) return
    this.#waiting.take(caller)
    try {
      const deadlineMs = Math.min(nowMs + limits.routerReportWaitMs, this.#endMs)
      await waitUntil(clock, deadlineMs, isOver, limits.routerReturnPollMs)
    } finally {
      this.#waiting.giveBack(caller)
    }
  }
}
