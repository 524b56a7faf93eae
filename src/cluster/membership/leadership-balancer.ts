import { create } from '@bufbuild/protobuf'

import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import { type LeadershipHold, LeadershipHoldSchema } from '../../../proto/gen/soft_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import type { OpenSoftTopic, SoftState } from '../../ports/soft-topics.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import {
  type LeaderCandidate,
  chooseLeader,
  type LeadershipTransferReason,
  type LeadershipTiming,
} from './leadership.ts'
import type { Logger } from '../logger.ts'

interface LeadershipOptions extends LeadershipTiming, LeadershipPreferences {}

/** Options that a running controller can change. */
interface LeadershipPreferences {
  /** Priority of this controller, 0 to 100. */
  readonly priority: number
  /**
   * If the leader exceeds one of these limits for `slowMsMin`, it transfers leadership to a much
   * healthier member, if there is one.
   */
  readonly slowFsyncMs: number
  readonly slowLoopMs: number
}

interface LeadershipDeps {
  readonly cluster: ClusterView
  readonly soft: SoftState
  readonly clock: Clock
  readonly log: Logger
  /** Match index of a peer on this leader; null when this controller does not lead. */
  readonly matchIndex: (id: NodeId) => Index | null
  /**
   * Transfers leadership.
   * @param reason one sentence for the audit.
   * @throws {Problem} when the transfer is not possible.
   */
  readonly transfer: (to: NodeId, reason: string) => Promise<void>
}

interface Hold {
  readonly reason: LeadershipTransferReason
  readonly remainingMs: number
}

const LOOK_MS = 1000
/**
 * Interval at which this controller publishes the remaining time of each hold that it started (a
 * time during which leadership does not move for certain reasons).
 */
const REPEAT_MS = 5000
const LAG_ENTRIES_MAX = 1000
const REASONS = ['manual', 'priority', 'slow'] as const

/**
 * Moves leadership to a member of higher priority, and away from a leader with a slow disk or event
 * loop. Runs on every controller and acts only on the leader. After a move, a hold prevents further
 * moves for some time. A hold must survive a change of leader, so controllers publish its remaining
 * time as soft state.
 */
export class LeadershipBalancer {
  #options: LeadershipOptions
  readonly #deps: LeadershipDeps
  readonly #topic: OpenSoftTopic<'leadership'>
  readonly #untilMs: Record<LeadershipTransferReason, number> = { manual: 0, priority: 0, slow: 0 }
  readonly #own = new Set<LeadershipTransferReason>()
  readonly #healthySinceMs = new Map<NodeId, number>()
  #slowSinceMs: number | null = null
  #leadsSinceMs: number | null = null
  #publishedMs = -Infinity
  #isMoving = false
  #stopTimer: (() => void) | null = null

  constructor(options: LeadershipOptions, deps: LeadershipDeps) {
    this.#options = options
    this.#deps = deps
    this.#topic = deps.soft.open('leadership')
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

  prefer({ priority, slowFsyncMs, slowLoopMs }: LeadershipPreferences): void {
    this.#options = { ...this.#options, priority, slowFsyncMs, slowLoopMs }
  }

  /**
   * Starts a hold of `manualHoldMs` after an operator has moved leadership, so that priorities do
   * not move it back.
   */
  pin(): void {
    this.#hold('manual', this.#options.manualHoldMs)
  }

  /** Runs once a second. Resolves when a transfer that it started has succeeded or failed. */
  async look(): Promise<void> {
    const members = this.#deps.cluster.members()
    this.#watchHealth(members)
    this.#repeatHolds()
    const { cluster, clock } = this.#deps
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
    const nowMs = this.#deps.clock.monotonicMs()
    const { selfId } = this.#deps.cluster
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

  #candidates(members: readonly MemberView[]): LeaderCandidate[] {
    const { cluster, matchIndex } = this.#deps
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
    const { log, transfer } = this.#deps
    this.#isMoving = true
    // The hold begins before the transfer, because the next leader must know it, and a failed
    // transfer must not be retried every second.
    this.#hold(reason, reason === 'slow' ? this.#options.slowHoldMs : this.#options.priorityHoldMs)
    const why = reason === 'slow' ? 'this controller is slow' : `${to} has a higher priority`
    log.info({ to, reason }, `transferring leadership to ${to}: ${why}`)
    try {
      await transfer(to, why)
    } catch (error) {
      const detail = error instanceof Problem ? error.message : String(error)
      log.warn({ to, reason }, `leadership transfer to ${to} failed: ${detail}`)
    } finally {
      this.#isMoving = false
    }
  }

  #hold(reason: LeadershipTransferReason, ms: number): void {
    this.#extend(reason, ms)
    this.#own.add(reason)
    this.#publishedMs = -Infinity
    this.#repeatHolds()
  }

  #extend(reason: LeadershipTransferReason, remainingMs: number): void {
    const untilMs = this.#deps.clock.monotonicMs() + remainingMs
    this.#untilMs[reason] = Math.max(this.#untilMs[reason], untilMs)
  }

  #repeatHolds(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    if (nowMs - this.#publishedMs < REPEAT_MS) return
    this.#publishedMs = nowMs
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

/**
 * Maximum hold that this controller accepts from a peer; it shortens a longer hold to this time.
 * The maximum exceeds all holds of this release.
 */
const HOLD_MS_MAX = 60 * 60_000

/** Decodes a hold; null when this release does not know its reason. */
function holdOf(message: LeadershipHold): Hold | null {
  const reason = REASONS.find((known) => known === message.reason)
  if (reason === undefined) return null
  return { reason, remainingMs: Math.min(message.remainingMs, HOLD_MS_MAX) }
}
