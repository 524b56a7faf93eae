import { errorMessage } from '../../lib/error-code.ts'
import { Problem } from '../../lib/problems.ts'
import type { HostedTerminators } from '../../ports/hosted-terminators.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { RouterDuty } from '../duty.ts'
import type { RouterLogger } from '../router-channels.ts'
import { terminatorRemoval } from './terminator-removal.ts'

/** Hosts looked at between two turns of the event loop. */
const SLICE = 50

export interface EndedHostsParts {
  readonly terminators: HostedTerminators
  readonly proposer: Proposer
  readonly isLeader: () => boolean
  readonly log: RouterLogger
}

/**
 * Removes the terminators of clients whose service sessions have ended. A router is told of each
 * end and removes them itself; one that keeps them would go on getting the traffic of the service.
 */
export class EndedHosts implements RouterDuty {
  readonly handlers: RouterDuty['handlers'] = new Map()
  readonly #parts: EndedHostsParts
  /** Identities to look at. */
  readonly #ended = new Set<string>()
  #stop: (() => void) | null = null
  #isAllDue = true
  #isLooking = false

  constructor(parts: EndedHostsParts) {
    this.#parts = parts
  }

  onSweep(): void {
    const { terminators, isLeader } = this.#parts
    this.#stop ??= terminators.follow((identityIds) => this.#onEnded(identityIds))
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
    if (identityIds === null) this.#isAllDue = true
    for (const id of identityIds ?? []) this.#ended.add(id)
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    const { terminators, log } = this.#parts
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
    const { terminators, proposer } = this.#parts
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
