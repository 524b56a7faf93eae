import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { MembershipStateView, MembershipConsensus } from './membership-consensus.ts'
import { voterIds } from './plan.ts'
import { takeMembershipSnapshot, type MembershipSnapshot } from './membership-snapshot.ts'
import { isMembershipChangeFinished } from './member-keys.ts'
import { pause, waitUntil } from '../../lib/runtime/wait.ts'

export interface RequestedMemberChange {
  /**
   * Short description of the change, for its own errors and for those of callers that wait until it
   * is complete.
   */
  readonly what: string
  /** Maximum time to wait until another change is complete. */
  readonly waitMs: number
  readonly timeoutMs: number
  /**
   * Whether the wanted change is complete. Called only with a committed configuration that is not
   * joint.
   */
  readonly isDone: (now: MembershipSnapshot) => boolean
  /**
   * Computes the target configuration; called for each attempt. @throws {Problem} when the change
   * is not allowed.
   */
  readonly target: (now: MembershipSnapshot) => ConfigurationRecord
}

const RETRY_MS = 50
/**
 * Time for which the promotion of a learner that reported itself as caught up is retried, because
 * it may still lack the latest batch.
 */
const CATCH_UP_MS = 3_000

/**
 * Changes members on the leader, one change at a time, for operators, admissions and the
 * reconciler. Each attempt computes its target from the current configuration, so callers can
 * simply repeat a change after a loss of leadership.
 */
export class MemberChanger {
  readonly #consensus: MembershipConsensus
  readonly #state: MembershipStateView
  readonly #clock: Clock
  #underWay: string | null = null

  constructor(consensus: MembershipConsensus, state: MembershipStateView, clock: Clock) {
    this.#consensus = consensus
    this.#state = state
    this.#clock = clock
  }

  get isBusy(): boolean {
    return this.#underWay !== null
  }

  /**
   * Resolves once the wanted configuration is committed and not joint.
   * @throws {Problem} MEMBERSHIP_BUSY; CLUSTER_NO_LEADER: the caller must repeat the request at the
   * next leader; PEER_UNREACHABLE: a majority did not confirm this change, or an earlier one, in
   * time; MEMBERSHIP_REFUSED: the Raft core refused the change; errors of `target`.
   */
  async run(wanted: RequestedMemberChange): Promise<void> {
    const deadlineMs = this.#clock.monotonicMs() + wanted.waitMs
    // The check and the assignment happen in the same turn of the event loop, so only one waiting
    // change can continue.
    while (this.#underWay !== null) {
      if (this.#clock.monotonicMs() >= deadlineMs) {
        const detail = `${this.#underWay} is in progress; retry when it is done`
        throw new Problem('MEMBERSHIP_BUSY', { detail })
      }
      await pause(RETRY_MS)
    }
    this.#underWay = wanted.what
    try {
      await this.#carryOut(wanted)
    } finally {
      this.#underWay = null
    }
  }

  async #carryOut(wanted: RequestedMemberChange): Promise<void> {
    const beganMs = this.#clock.monotonicMs()
    const deadlineMs = beganMs + wanted.timeoutMs
    for (;;) {
      const isResting = await waitUntil(this.#clock, deadlineMs, () => this.#isAtRestOrLost())
      const configuration = this.#consensus.configuration()
      if (!isResting) throw unconfirmed(this.#consensus, wanted.what)
      const now = takeMembershipSnapshot(this.#consensus, this.#state)
      // This check precedes the check of leadership: a leader that removed itself has lost
      // leadership, and its change is complete.
      if (isMembershipChangeFinished(configuration) && wanted.isDone(now)) return
      this.#refuseUnlessLeader()
      if (this.#clock.monotonicMs() >= deadlineMs) throw unconfirmed(this.#consensus, wanted.what)
      // The request names the index of the configuration, because this thread may lag behind the
      // Raft core, especially under load. Without the index, a leader that lost and regained
      // leadership could base a change on an outdated member list.
      const target = wanted.target(now)
      const code = await this.#consensus.changeConfiguration(target, configuration.index)
      if (code === null) {
        // The status with the new entry arrives shortly after the entry is logged.
        const { index } = configuration
        await waitUntil(
          this.#clock,
          deadlineMs,
          () => this.#consensus.configuration().index !== index || !this.#isLeader(),
        )
      } else {
        this.#judgeRefusal(code, beganMs)
        await pause(RETRY_MS)
      }
    }
  }

  #isLeader(): boolean {
    return this.#consensus.status().role === 'leader'
  }

  #isAtRestOrLost(): boolean {
    return isMembershipChangeFinished(this.#consensus.configuration()) || !this.#isLeader()
  }

  #refuseUnlessLeader(): void {
    if (this.#isLeader()) return
    const detail = 'leadership was lost during the change; retry, it is safe to repeat'
    throw new Problem('CLUSTER_NO_LEADER', { detail })
  }

  /** Returns if another attempt may succeed; otherwise throws. */
  #judgeRefusal(code: string, beganMs: number): void {
    switch (code) {
      case 'CHANGE_IN_PROGRESS':
        return
      case 'NOT_CAUGHT_UP':
        if (this.#clock.monotonicMs() - beganMs < CATCH_UP_MS) return
        throw new Problem('MEMBERSHIP_REFUSED', {
          detail: 'the new voter does not keep up with the log; retry under less load',
        })
      case 'NOT_LEADER':
        throw new Problem('CLUSTER_NO_LEADER')
      case 'INVALID_CONFIGURATION':
        throw new Problem('MEMBERSHIP_REFUSED')
      default:
        throw new Problem('PEER_UNREACHABLE', { detail: code })
    }
  }
}

function unconfirmed(consensus: MembershipConsensus, what: string): Problem {
  const voters = new Set([
    ...voterIds(consensus.configuration().record),
    ...consensus.configuration().record.outgoingVoters,
  ])
  const silent = consensus
    .peerStatuses()
    .flatMap(({ id, isConnected }) => (isConnected || !voters.has(id) ? [] : [id]))
  const who = silent.length === 0 ? '' : ` (${silent.join(', ')} unreachable)`
  return new Problem('PEER_UNREACHABLE', {
    detail: `${what} is not confirmed yet by a majority of the voters before and after it${who}; it takes effect once they respond, and is safe to repeat`,
  })
}
