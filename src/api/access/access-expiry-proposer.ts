import { CommandKind } from '../../../proto/gen/command_pb.ts'
import { type Clock, earlierOfLocalAndQuorumNowMs } from '../../lib/clock.ts'
import type { PeriodicScheduler } from '../../lib/periodic-scheduler.ts'
import { Problem } from '../../lib/problems.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ApiLimits } from '../limits.ts'

interface AccessEndProposerDeps {
  readonly state: StateView
  readonly cluster: ClusterView
  readonly proposer: Proposer
  readonly clock: Clock
  readonly scheduler: PeriodicScheduler
  readonly limits: ApiLimits
  readonly logger: ServiceLogger
}

/**
 * Proposes the log entry that ends expired access or announces access that expires soon, as soon as
 * log time can reach the next such time. The state machine decides which access ends, so an
 * unnecessary entry changes nothing.
 */
export class AccessExpiryProposer {
  readonly #deps: AccessEndProposerDeps
  #stop: () => void = () => undefined
  #isAtWork = false

  constructor(deps: AccessEndProposerDeps) {
    this.#deps = deps
  }

  start(): void {
    const { scheduler, limits } = this.#deps
    this.#stop = scheduler.every(limits.accessEndMs, () => void this.look())
  }

  stop(): void {
    this.#stop()
  }

  /** Proposes an entry if one is due. Never rejects. */
  async look(): Promise<void> {
    if (this.#isAtWork || !this.#isDue()) return
    this.#isAtWork = true
    try {
      // One log entry ends access for a limited number of records, so further entries follow while
      // more are due.
      do await this.#propose()
      while ((this.#deps.state.nextAccessEndMs() ?? Infinity) <= this.#deps.state.logTimeMs)
    } catch (error) {
      // There may be no leader for a while; the next call tries again.
      if (error instanceof Problem) return
      this.#deps.logger.error({ err: error }, 'cannot end access whose time is over')
    } finally {
      this.#isAtWork = false
    }
  }

  async #propose(): Promise<void> {
    const { proposer } = this.#deps
    const payload = new Uint8Array()
    await proposer.propose({ kind: CommandKind.ACCESS_END, payload, actor: SYSTEM_ACTOR })
  }

  /**
   * Whether an entry is due. A controller other than the leader proposes only if the leader is
   * late, for example because the leader's main thread hangs.
   */
  #isDue(): boolean {
    const { state, cluster, limits } = this.#deps
    const nextMs = state.nextAccessEndMs()
    if (nextMs === null) return false
    const lateMs = cluster.leaderId() === cluster.selfId ? 0 : limits.accessEndLateMs
    // Log time advances only as far as the clocks of a majority. So this check does not trust the
    // clock of this controller if it is ahead of the majority's time.
    const nowMs = Math.max(state.logTimeMs, earlierOfLocalAndQuorumNowMs(this.#deps) ?? 0)
    return nextMs + lateMs <= nowMs
  }
}
