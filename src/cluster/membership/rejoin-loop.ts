import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { NodeId } from '../../raft/types.ts'
import type { Logger } from '../logger.ts'
import type { MembershipConsensus } from './membership-consensus.ts'
import type { AdmissionOutcome } from './decide-admission.ts'
import { isSameBytes } from './member-keys.ts'

interface RejoinDeps {
  readonly consensus: Pick<MembershipConsensus, 'selfId' | 'configuration' | 'peerStatuses'>
  /** Store id of the current data folder, 16 bytes. */
  readonly storeId: Uint8Array
  /** host:port, tried after the addresses of known members. */
  readonly seeds: () => readonly string[]
  readonly enter: (addresses: readonly string[]) => Promise<AdmissionOutcome>
  /**
   * Called with each response, including refusals. It decides whether this controller continues.
   */
  readonly onAnswer: (answer: AdmissionOutcome) => void
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn'>
}

const TURN_MS = 250
/** Interval between two requests. */
const INTERVAL_MS = 2_000
const ADDRESSES_MAX = 32
/**
 * Time for which this controller remembers a peer's refusal. The peer repeats the refusal as long
 * as its reason exists.
 */
const REFUSED_MS = 5_000

/** Messages about the ways in which the leader has admitted this controller. */
const admittedAs = {
  member: 'the leader confirms this controller as a member',
  added: 'admitted as a learner; catching up',
  returning: 're-admitted as a learner with an empty data folder; catching up',
} as const

/**
 * Requests admission while the log of this controller does not list this controller with its
 * current disk, or while its peers refuse it. The log may be wrong in both directions: an entry
 * that lists this controller may never be committed, and the removal of this controller may have
 * been committed after it stopped.
 */
export class RejoinLoop {
  readonly #deps: RejoinDeps
  #stopTimer: (() => void) | null = null
  #isAsking = false
  #askAgainMs = 0
  #refusedUntilMs = 0
  #lastSaid = ''

  constructor(deps: RejoinDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#stopTimer ??= periodicScheduler.every(TURN_MS, () => void this.#turn())
    void this.#turn()
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  get isListed(): boolean {
    const { consensus, storeId } = this.#deps
    const { members } = consensus.configuration().record
    const member = members.find(({ id }) => id === consensus.selfId)
    return member !== undefined && isSameBytes(member.storeId, storeId)
  }

  /** Called when a peer has refused this controller. */
  onRefused(): void {
    this.#refusedUntilMs = this.#deps.clock.monotonicMs() + REFUSED_MS
  }

  async #turn(): Promise<void> {
    // Before the first status of the consensus thread, the members are unknown, so no decision is
    // possible yet.
    const isKnown = this.#deps.consensus.configuration().record.members.length > 0
    const nowMs = this.#deps.clock.monotonicMs()
    const isEarly = this.#isAsking || nowMs < this.#askAgainMs
    const isIn = this.isListed && nowMs >= this.#refusedUntilMs
    if (this.#stopTimer === null || isEarly || !isKnown || isIn) return
    this.#isAsking = true
    this.#askAgainMs = nowMs + INTERVAL_MS
    try {
      const answer = await this.#deps.enter(this.#addresses())
      if (this.#stopTimer === null) return
      this.#say(answer)
      this.#deps.onAnswer(answer)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      this.#once('warn', `not admitted yet: ${error.message}`)
    } finally {
      this.#isAsking = false
    }
  }

  #addresses(): readonly string[] {
    const { consensus, seeds } = this.#deps
    const known = new Map<NodeId, string>()
    for (const { id, address } of consensus.configuration().record.members) known.set(id, address)
    for (const { id, address } of consensus.peerStatuses()) known.set(id, address)
    known.delete(consensus.selfId)
    return [...new Set([...known.values(), ...seeds()])].slice(0, ADDRESSES_MAX)
  }

  #say(answer: AdmissionOutcome): void {
    if (answer.outcome === 'refused') this.#once('warn', answer.detail)
    else this.#once('info', admittedAs[answer.outcome])
  }

  /** Logs a message unless it equals the last logged message. */
  #once(level: 'info' | 'warn', message: string): void {
    if (message === this.#lastSaid) return
    this.#lastSaid = message
    this.#deps.log[level]({}, message)
  }
}
