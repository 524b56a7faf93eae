import { assert } from '../../src/lib/assert.ts'
import type { FullCoreStatus } from '../../src/raft/core.ts'
import { defaultRaftNodeLimits } from '../../src/raft/node-start.ts'
import type { NodeId, Term } from '../../src/raft/types.ts'
import type { Controller, Life } from './controller.ts'
import { isQuorum } from '../raft/slow-quorum.ts'
import type { World } from './world.ts'

const STEADY_MS = 3_000
const TICK_MS = defaultRaftNodeLimits.tickMs

/**
 * I19: a leader that can exchange messages with a majority stays leader. This is checked in runs
 * without any other reason for a change of leader: no message is lost or late at random, and no
 * disk is so slow that its leader transfers leadership. Partitions and crashes of others, and slow
 * followers, may occur.
 */
export class Stability {
  readonly #world: World
  readonly #isApplicable: boolean
  #leader: {
    readonly id: NodeId
    readonly term: Term
    /** Null after the process ended: that leader no longer leads. */
    readonly life: Life | null
    sinceMs: number
  } | null = null

  constructor(world: World) {
    this.#world = world
    const { rates, clockOffsetsMs, core } = world.plan
    const stallMsMax = core.diskStallTicks * TICK_MS
    this.#isApplicable =
      rates.lossChance + rates.lateChance + rates.resetChance + rates.slowDiskChance === 0 &&
      rates.applyMsMax === 0 &&
      clockOffsetsMs.every((offsetMs) => Math.abs(offsetMs) < 1_000) &&
      world.plan.events.every(
        ({ what }) =>
          HARMLESS.has(what.type) ||
          (what.type === 'disk slow' && what.forMs + what.syncMs < stallMsMax),
      )
  }

  look(controller: Controller, status: FullCoreStatus): void {
    if (!this.#isApplicable) return
    const nowMs = this.#world.loop.nowMs
    if (status.role === 'leader') {
      if (this.#leader?.id !== controller.id || this.#leader.term !== status.term) {
        if (status.term > (this.#leader?.term ?? 0)) this.#assertNotUnseated(nowMs)
        const { id, life } = controller
        this.#leader = { id, term: status.term, life, sinceMs: nowMs }
      }
      const isConnected = isQuorum(status.configuration, (id) => this.#isHeard(controller.id, id))
      if (!isConnected || status.configuration.outgoingVoters.length > 0)
        this.#leader.sinceMs = nowMs
    } else if (this.#leader?.id === controller.id) {
      // The leader was replaced in a later term, or stepped down without a majority: the rest of
      // its term does not matter.
      this.#assertNotUnseated(nowMs)
      this.#leader = null
    }
  }

  #assertNotUnseated(nowMs: number): void {
    const leader = this.#leader
    if (leader === null) return
    if (this.#world.controllers.get(leader.id)?.life !== leader.life) return
    assert(
      nowMs - leader.sinceMs < STEADY_MS,
      `I19: ${leader.id} led term ${leader.term} with a majority since ${leader.sinceMs} ms, but was deposed`,
    )
  }

  #isHeard(a: NodeId, b: NodeId): boolean {
    if (a === b) return true
    const { network, controllers } = this.#world
    return (
      controllers.get(b)?.isRunning === true &&
      controllers.get(a)?.life?.mesh.hasLinkTo(b) === true &&
      controllers.get(b)?.life?.mesh.hasLinkTo(a) === true &&
      !network.isCut(a, b) &&
      !network.isCut(b, a)
    )
  }
}

/** These faults never cut a leader off from its majority without this check noticing. */
const HARMLESS: ReadonlySet<string> = new Set([
  'crash',
  'crash within a write',
  'partition',
  'bad input',
  'damage',
])
