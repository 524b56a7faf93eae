import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { Clock } from '../../lib/clock.ts'
import { waitUntil } from '../../lib/runtime/wait.ts'
import type { ApiSessionLimits } from './limits.ts'

export interface RouterReturnDeps {
  readonly clock: Clock
  readonly limits: ApiSessionLimits
}

/**
 * Delays service sessions for a few seconds after the start of a controller, until a router that
 * the client can use has reconnected. After an outage of all controllers, clients return as fast as
 * routers. A client of OpenZiti's Go SDK that gets a service session without a reachable router
 * requests routers again only after at least 30 s, and its services are not hosted until then.
 */
export class RouterReturn {
  readonly #deps: RouterReturnDeps
  readonly #endMs: number
  #waiting = 0

  constructor(deps: RouterReturnDeps) {
    this.#deps = deps
    this.#endMs = deps.clock.monotonicMs() + deps.limits.routerReturnMs
  }

  /**
   * Waits until one of the routers has an address for clients, or none of them is still expected.
   * Does not wait if the controller started long ago, or if `routerReturnWaitersMax` requests wait.
   * @param read reads the edge routers that the response would contain.
   */
  async wait(read: () => readonly JsonObject[]): Promise<void> {
    const { clock, limits } = this.#deps
    const nowMs = clock.monotonicMs()
    if (nowMs >= this.#endMs || this.#waiting >= limits.routerReturnWaitersMax) return
    const isOver = (): boolean => {
      const routers = read()
      return routers.some(hasAddress) || !routers.some(isExpected)
    }
    if (isOver()) return
    this.#waiting += 1
    try {
      const deadlineMs = Math.min(nowMs + limits.routerReturnWaitMs, this.#endMs)
      await waitUntil(clock, deadlineMs, isOver)
    } finally {
      this.#waiting -= 1
    }
  }
}

/** Whether the detail of an edge router contains an address at which clients reach the router. */
function hasAddress({ supportedProtocols }: JsonObject): boolean {
  return Object.keys((supportedProtocols as JsonObject | undefined) ?? {}).length > 0
}

/** Whether a router is enrolled, enabled, and has not connected and reported its listeners yet. */
function isExpected({ isVerified, disabled, isOnline, hostname }: JsonObject): boolean {
  // A router reports its host name and its listeners in one message.
  return isVerified === true && disabled !== true && !(isOnline === true && hostname !== '')
}
