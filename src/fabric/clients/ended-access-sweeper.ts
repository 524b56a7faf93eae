import { errorMessage } from '../../lib/error-code.ts'
import { Problem } from '../../lib/problems.ts'
import type { HostedTerminators, UnauthorizedTerminator } from '../../ports/hosted-terminators.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import type { RouterLogger } from '../router-channels.ts'
import { terminatorRemovalProposal } from './terminator-removal.ts'

/** Maximum number of hosting identities that are checked before other work runs. */
const SLICE = 50

export interface EndedAccessSweeperDeps {
  readonly terminators: HostedTerminators
  readonly proposer: Proposer
  readonly isLeader: () => boolean
  /**
   * Ends circuits that begin at a router that the client may not use. Checks the given clients;
   * null: all clients.
   */
  readonly endCircuits: (
    identityIds: ReadonlySet<string> | null,
    mayUse: HostedTerminators['mayUse'],
  ) => void
  /**
   * Makes the router of a removed terminator inform the hosting client, so that the client hosts
   * the service again if it may.
   */
  readonly endHosting: (terminator: UnauthorizedTerminator) => void
  readonly log: RouterLogger
}

/**
 * Removes terminators of clients that may no longer host the service or use the router, for example
 * because their service sessions have ended. Routers receive each ended session and remove its
 * terminators, but a faulty router that keeps a terminator would still receive traffic. Also ends
 * circuits of clients at routers that they may no longer use according to the policies, because
 * routers do not know this for OIDC clients.
 */
export class EndedAccessSweeper implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers'] = new Map()
  readonly #deps: EndedAccessSweeperDeps
  /** IDs of identities whose terminators must be checked. */
  readonly #ended = new Set<string>()
  #stop: (() => void) | null = null
  #isAllDue = true
  /** Clients whose circuits must be checked; null: all clients. */
  #moved: Set<string> | null = null
  #isLooking = false

  constructor(deps: EndedAccessSweeperDeps) {
    this.#deps = deps
  }

  onSweep(): void {
    const { terminators, isLeader } = this.#deps
    this.#stop ??= terminators.follow((identityIds) => this.#onEnded(identityIds))
    this.#endCircuits()
    if (isLeader()) {
      if (this.#isAllDue || this.#ended.size > 0) void this.#look()
      return
    }
    // Only the leader checks terminators; a new leader checks all of them.
    this.#ended.clear()
    this.#isAllDue = true
  }

  onStop(): void {
    this.#stop?.()
    this.#stop = null
  }

  #onEnded(identityIds: readonly string[] | null): void {
    if (identityIds === null) {
      this.#isAllDue = true
      this.#moved = null
    }
    for (const id of identityIds ?? []) {
      this.#ended.add(id)
      this.#moved?.add(id)
    }
  }

  /** Runs on every controller, because each controller ends the circuits that it owns. */
  #endCircuits(): void {
    const moved = this.#moved
    if (moved?.size === 0) return
    const { terminators, endCircuits } = this.#deps
    this.#moved = new Set()
    endCircuits(moved, (identityId, routerId) => terminators.mayUse(identityId, routerId))
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    const { terminators, log } = this.#deps
    this.#isLooking = true
    const isAll = this.#isAllDue
    this.#isAllDue = false
    const hosts = isAll ? terminators.hosts() : [...this.#ended]
    this.#ended.clear()
    try {
      await this.#remove(hosts)
    } catch (error) {
      this.#isAllDue = true
      if (error instanceof Problem) return
      log.warn({ reason: errorMessage(error) }, 'cannot remove terminators of ended sessions')
    } finally {
      this.#isLooking = false
    }
  }

  /**
   * A write fails without a log line if there is no leader or no response; the next sweep tries
   * again.
   */
  async #remove(hosts: Iterable<string>): Promise<void> {
    const { terminators, proposer, endHosting } = this.#deps
    let looked = 0
    for (const identityId of hosts) {
      looked += 1
      if (looked % SLICE === 0) await new Promise((go) => setImmediate(go))
      for (const terminator of terminators.ungranted(identityId)) {
        await proposer.propose(terminatorRemovalProposal(terminator.id))
        endHosting(terminator)
      }
    }
  }
}
