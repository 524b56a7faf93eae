import { errorMessage } from '../../lib/error-code.ts'
import { Problem } from '../../lib/problems.ts'
import type { HostedTerminators, UnauthorizedTerminator } from '../../ports/hosted-terminators.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import type { RouterLogger } from '../router-channels.ts'
import { terminatorRemovalProposal } from './terminator-removal.ts'

/** Maximum hosts examined between two turns of the event loop. */
const SLICE = 50

export interface EndedSessionTerminatorsDeps {
  readonly terminators: HostedTerminators
  readonly proposer: Proposer
  readonly isLeader: () => boolean
  /**
   * Ends circuits of these clients (null: of all clients) that begin at a router that the client
   * may not use.
   */
  readonly endCircuits: (
    identityIds: ReadonlySet<string> | null,
    mayUse: HostedTerminators['mayUse'],
  ) => void
  /**
   * Ends the hosting of a removed terminator at the terminator's router, so that the hosting client
   * starts to host again.
   */
  readonly endHosting: (terminator: UnauthorizedTerminator) => void
  readonly log: RouterLogger
}

/**
 * Removes terminators of clients whose service sessions have ended. Routers learn of each ended
 * session and remove its terminators themselves, but a router that keeps a terminator would still
 * receive traffic of the service. Also ends circuits of clients at routers that policies no longer
 * let them use, because routers do not know this for OIDC clients.
 */
export class EndedSessionTerminators implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers'] = new Map()
  readonly #deps: EndedSessionTerminatorsDeps
  /** Identities to examine. */
  readonly #ended = new Set<string>()
  #stop: (() => void) | null = null
  #isAllDue = true
  /** Clients whose circuits must be checked; null: all clients. */
  #moved: Set<string> | null = null
  #isLooking = false

  constructor(deps: EndedSessionTerminatorsDeps) {
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
    // Only the leader examines ended sessions; a new leader examines all terminators.
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

  /** A missing leader or response is normal, so it is not logged; the next sweep retries. */
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
