import { type Clock, earlierOfLocalAndQuorumNowMs } from '../../lib/clock.ts'
import type { PeriodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { OpenSoftTopic, RefreshUse } from '../../ports/soft-topics.ts'
import type { StateView } from '../../ports/state-view.ts'

interface RefreshUseLimits {
  readonly refreshReuseMs: number
  readonly refreshSessionsMax: number
  readonly refreshSweepMs: number
}

interface RefreshUsesDeps {
  readonly state: Pick<StateView, 'get'>
  readonly clock: Clock
  readonly cluster: Pick<ClusterView, 'quorumClockMs'>
  readonly scheduler: PeriodicScheduler
  readonly refreshes: OpenSoftTopic<'refreshes'>
  readonly limits: RefreshUseLimits
}

/**
 * Detects reuse of refresh tokens (RFC 9700, 4.14.2). A used token is accepted again for a short
 * time, because OpenZiti clients send it twice, and repeat it after a lost response; later reuse
 * indicates theft. A refresh writes no log entry: controllers share the generation of the last used
 * token of each session as soft state, which is lost if all controllers stop at the same time.
 */
export class RefreshTokenReuse {
  readonly #deps: RefreshUsesDeps
  readonly #bySession = new Map<string, RefreshUse>()
  #stop: () => void = () => undefined

  constructor(deps: RefreshUsesDeps) {
    this.#deps = deps
    deps.refreshes.onChange((_owner, sessionId, use) => {
      if (use !== undefined) this.#note(sessionId, use)
    })
  }

  start(): void {
    const { scheduler, limits } = this.#deps
    this.#stop = scheduler.every(limits.refreshSweepMs, () => this.sweep())
  }

  stop(): void {
    this.#stop()
  }

  /**
   * Records the use of a token.
   * @returns whether this token or a later one of the session was first used so long ago that this
   * use indicates theft.
   */
  isReused(sessionId: string, generation: number): boolean {
    const { clock, limits, refreshes } = this.#deps
    // Reuse ends the session, so a wrong clock of this controller alone must not cause it.
    // @guard clock-of-the-leader--refresh
    const nowMs = earlierOfLocalAndQuorumNowMs(this.#deps) ?? clock.nowMs()
    const known = this.#bySession.get(sessionId)
    if (known !== undefined && generation <= known.generation) {
      return nowMs - known.usedAtMs > limits.refreshReuseMs
    }
    const use = { generation, usedAtMs: nowMs }
    this.#note(sessionId, use)
    refreshes.publish(sessionId, use)
    return false
  }

  /** Drops sessions that have ended. */
  sweep(): void {
    for (const id of this.#bySession.keys()) {
      if (this.#deps.state.get('apiSession', id) === undefined) this.#forget(id)
    }
  }

  #note(sessionId: string, use: RefreshUse): void {
    const known = this.#bySession.get(sessionId)
    if (known !== undefined && known.generation >= use.generation) return
    if (known === undefined && this.#bySession.size >= this.#deps.limits.refreshSessionsMax) {
      const [oldest] = this.#bySession.keys()
      if (oldest !== undefined) this.#forget(oldest)
    }
    this.#bySession.set(sessionId, use)
  }

  #forget(sessionId: string): void {
    this.#bySession.delete(sessionId)
    this.#deps.refreshes.withdraw(sessionId)
  }
}
