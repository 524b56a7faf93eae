import { errorMessage } from '../../lib/error-code.ts'
import { Problem } from '../../lib/problems.ts'
import type { HostedTerminators } from '../../ports/hosted-terminators.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { RouterDuty } from '../duty.ts'
import type { RouterLogger } from '../router-channels.ts'
import { terminatorRemoval } from './terminator-removal.ts'

/** Hosts looked at between two turns of the event loop. */
const SLICE = 50

export interface EndedHostsDeps {
  readonly terminators: HostedTerminators
  readonly proposer: Proposer
  readonly isLeader: () => boolean
  /** Ends circuits of these clients that begin at a router that they may not use; null: of all. */
  readonly endCircuits: (
    identityIds: ReadonlySet<string> | null,
    mayUse: HostedTerminators['mayUse'],
  ) => void
  readonly log: RouterLogger
}

/**
 * Removes the terminators of clients whose service sessions have ended. A router is told of each
 * end and removes them itself; one that keeps them would go on getting the traffic of the service.
 * It also ends circuits of clients at routers that policies let them use no more: no router knows
 * that of a client of OIDC.
 */
export class EndedHosts implements RouterDuty {
  readonly handlers: RouterDuty['handlers'] = new Map()
  readonly #deps: EndedHostsDeps
  /** Identities to look at. */
  readonly #ended = new Set<string>()
  #stop: (() => void) | null = null
  #isAllDue = true
  /** Clients that may have circuits to end; null: all. */
  #moved: Set<string> | null = null
  #isLooking = false

  constructor(deps: EndedHostsDeps) {
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
    // Another controller looks; when this one leads, it looks at all of them.
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

  /** Each controller ends its own. */
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

  /** No leader or no answer is part of life: the next sweep tries again. */
  async #remove(hosts: Iterable<string>): Promise<void> {
    const { terminators, proposer } = this.#deps
    let looked = 0
    for (const identityId of hosts) {
      looked += 1
      if (looked % SLICE === 0) await new Promise((go) => setImmediate(go))
      for (const id of terminators.ungranted(identityId)) {
        await proposer.propose(terminatorRemoval(id))
      }
    }
  }
}
