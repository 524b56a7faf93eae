import { create } from '@bufbuild/protobuf'

import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import { type LeadershipHold, LeadershipHoldSchema } from '../../../proto/gen/soft_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import type { OpenTopic, SoftState } from '../../ports/soft-topics.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import {
  type Candidate,
  chooseLeader,
  type HoldReason,
  type LeadershipTiming,
} from './leadership.ts'
import type { Logger } from '../logger.ts'

export interface LeadershipOptions extends LeadershipTiming {
  /** Priority of this controller, 0 to 100. */
  readonly priority: number
  /**
   * Beyond either of them for `slowMsMin`, a leader steps aside for a member that is well below.
   */
  readonly slowFsyncMs: number
  readonly slowLoopMs: number
}

export interface LeadershipParts {
  readonly cluster: ClusterView
  readonly soft: SoftState
  readonly clock: Clock
  readonly log: Logger
  /** How far each peer's log equals this leader's; null when this controller does not lead. */
  readonly matchIndex: (id: NodeId) => Index | null
  /** @throws {Problem} when it can not. */
  /** @param reason one sentence, for the audit. */
  readonly transfer: (to: NodeId, reason: string) => Promise<void>
}

interface Hold {
  readonly reason: HoldReason
  readonly remainingMs: number
}

const LOOK_MS = 1000
/** How often a hold is told again with what is left of it. */
const REPEAT_MS = 5000
const LAG_ENTRIES_MAX = 1000
const REASONS = ['manual', 'priority', 'slow'] as const

/**
 * Moves leadership to where it should be: to a member of a higher priority, and away from a leader
 * whose disk or event loop is slow. Runs on every controller and acts on the leader alone. What
 * must outlast a change of leader, the times in which nothing is to be moved, is soft state, told
 * as time that is left.
 */
export class LeadershipBalancer {
  readonly #options: LeadershipOptions
  readonly #parts: LeadershipParts
  readonly #topic: OpenTopic<'leadership'>
  readonly #untilMs: Record<HoldReason, number> = { manual: 0, priority: 0, slow: 0 }
  readonly #own = new Set<HoldReason>()
  readonly #healthySinceMs = new Map<NodeId, number>()
  #slowSinceMs: number | null = null
  #leadsSinceMs: number | null = null
  #toldMs = -Infinity
  #isMoving = false
  #stopTimer: (() => void) | null = null

  constructor(options: LeadershipOptions, parts: LeadershipParts) {
    this.#options = options
    this.#parts = parts
    this.#topic = parts.soft.open('leadership')
    this.#topic.onChange((_owner, _key, message) => {
      const hold = message === undefined ? null : holdOf(message)
      if (hold !== null) this.#extend(hold.reason, hold.remainingMs)
    })
  }

  start(): void {
    this.#stopTimer ??= periodicScheduler.every(LOOK_MS, () => void this.look())
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  /** An operator moves leadership by hand: preferences leave it where it goes for ten minutes. */
  pin(): void {
    this.#hold('manual', this.#options.manualHoldMs)
  }

  /** Once a second. Resolves when what it began is over. */
  async look(): Promise<void> {
    const members = this.#parts.cluster.members()
    this.#watchHealth(members)
    this.#repeatHolds()
    const { cluster, clock } = this.#parts
    if (cluster.leaderId() !== cluster.selfId) {
      this.#leadsSinceMs = null
      return
    }
    this.#leadsSinceMs ??= clock.monotonicMs()
    const ledMs = clock.monotonicMs() - this.#leadsSinceMs
    if (this.#isMoving || ledMs < this.#options.leadsMsMin) return
    const choice = chooseLeader(
      {
        nowMs: clock.monotonicMs(),
        priority: this.#options.priority,
        slowSinceMs: this.#slowSinceMs,
        holds: {
          manualUntilMs: this.#untilMs.manual,
          priorityUntilMs: this.#untilMs.priority,
          slowUntilMs: this.#untilMs.slow,
        },
        candidates: this.#candidates(members),
      },
      this.#options,
    )
    if (choice !== null) await this.#move(choice.to, choice.reason)
  }

  #watchHealth(members: readonly MemberView[]): void {
    const nowMs = this.#parts.clock.monotonicMs()
    const { selfId } = this.#parts.cluster
    for (const member of members) {
      if (member.id === selfId) {
        if (this.#isSlow(member, 1)) this.#slowSinceMs ??= nowMs
        else this.#slowSinceMs = null
      } else if (isWell(member) && !this.#isSlow(member, 1)) {
        if (!this.#healthySinceMs.has(member.id)) this.#healthySinceMs.set(member.id, nowMs)
      } else {
        this.#healthySinceMs.delete(member.id)
      }
    }
    const ids = new Set(members.map(({ id }) => id))
    for (const id of this.#healthySinceMs.keys()) if (!ids.has(id)) this.#healthySinceMs.delete(id)
  }

  #isSlow({ vitals }: MemberView, factor: number): boolean {
    if (vitals === null) return false
    const { slowFsyncMs, slowLoopMs } = this.#options
    return vitals.fsyncP99Ms > slowFsyncMs * factor || vitals.loopDelayP99Ms > slowLoopMs * factor
  }

  #candidates(members: readonly MemberView[]): Candidate[] {
    const { cluster, matchIndex } = this.#parts
    const last = members.find(({ id }) => id === cluster.selfId)?.vitals?.last ?? 0
    return members
      .filter(({ id }) => id !== cluster.selfId)
      .map((member) => ({
        id: member.id,
        priority: member.vitals?.priority ?? 0,
        isEligible:
          member.voter &&
          isWell(member) &&
          last - (matchIndex(member.id) ?? -Infinity) <= LAG_ENTRIES_MAX,
        healthySinceMs: this.#healthySinceMs.get(member.id) ?? null,
        isMuchHealthier: !this.#isSlow(member, 0.5),
      }))
  }

  async #move(to: NodeId, reason: 'priority' | 'slow'): Promise<void> {
    const { log, transfer } = this.#parts
    this.#isMoving = true
    // Before it is done: whoever leads next must know, and a transfer that fails is not to be tried
    // every second.
    this.#hold(reason, reason === 'slow' ? this.#options.slowHoldMs : this.#options.priorityHoldMs)
    const why = reason === 'slow' ? 'this controller is slow' : `${to} has a higher priority`
    log.info({ to, reason }, `transferring leadership to ${to}: ${why}`)
    try {
      await transfer(to, why)
    } catch (error) {
      const because = error instanceof Problem ? error.message : String(error)
      log.warn({ to, reason }, `leadership transfer to ${to} failed: ${because}`)
    } finally {
      this.#isMoving = false
    }
  }

  #hold(reason: HoldReason, ms: number): void {
    this.#extend(reason, ms)
    this.#own.add(reason)
    this.#toldMs = -Infinity
    this.#repeatHolds()
  }

  #extend(reason: HoldReason, remainingMs: number): void {
    const untilMs = this.#parts.clock.monotonicMs() + remainingMs
    this.#untilMs[reason] = Math.max(this.#untilMs[reason], untilMs)
  }

  #repeatHolds(): void {
    const nowMs = this.#parts.clock.monotonicMs()
    if (nowMs - this.#toldMs < REPEAT_MS) return
    this.#toldMs = nowMs
    for (const reason of this.#own) {
      const remainingMs = Math.ceil(this.#untilMs[reason] - nowMs)
      if (remainingMs > 0) {
        this.#topic.publish(reason, create(LeadershipHoldSchema, { reason, remainingMs }))
        continue
      }
      this.#own.delete(reason)
      this.#topic.withdraw(reason)
    }
  }
}

function isWell({ connected, vitals }: MemberView): boolean {
  return connected && vitals !== null && !vitals.isFailing
}

/** Longer than any that this release makes is not believed. */
const HOLD_MS_MAX = 60 * 60_000

/** null: for a reason that this release does not know. */
function holdOf(message: LeadershipHold): Hold | null {
  const reason = REASONS.find((known) => known === message.reason)
  if (reason === undefined) return null
  return { reason, remainingMs: Math.min(message.remainingMs, HOLD_MS_MAX) }
}
