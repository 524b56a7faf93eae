import { assert, requirePresent } from '../../lib/assert.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { releaseBuffer } from '../../lib/bounds/release-buffer.ts'
import { SequenceWindow } from '../../lib/sequence-window.ts'
import { Problem } from '../../lib/problems.ts'
import type { TraceContext } from '../../lib/trace-context.ts'
import type { AppliedProposal } from '../../ports/proposer.ts'
import type { ProposalForwardRefusalCode } from '../thread-channel.ts'

/**
 * queued: sent with the next batch. sent: passed to the consensus thread and not refused since.
 * parked: refused, or its leader failed; sent again once there is a leader.
 */
type Stage = 'queued' | 'sent' | 'parked'

export interface OutstandingProposal {
  readonly sequence: number
  readonly command: Uint8Array
  /** Trace of the request behind the proposal. */
  readonly trace?: TraceContext
  /**
   * Caller with whom the queue is shared fairly; '' for the controller itself, which has no limit
   * per caller.
   */
  readonly caller: string
  readonly deadlineMs: number
  readonly resolve: (applied: AppliedProposal) => void
  readonly reject: (problem: Problem) => void
  stage: Stage
  /**
   * True if an attempt was sent and its outcome is unknown. A refusal of a later attempt does not
   * make the outcome known.
   */
  isFateOpen: boolean
  lastRefusal: ProposalForwardRefusalCode | null
}

/**
 * Proposals of this controller whose outcome is not known yet. Each command contains the lowest
 * sequence number that is outstanding at that time. After it has applied such a command, the state
 * machine ignores commands with a lower number, so a proposal that was abandoned before cannot take
 * effect any more.
 */
export class OutstandingProposals {
  readonly #window = new SequenceWindow<OutstandingProposal>()
  readonly #countMax: number
  readonly #spanMax: number
  readonly #bytesMax: number
  readonly #counts: FairShare
  readonly #byteShares: FairShare
  #bytes = 0

  /**
   * @param limits.countMax maximum number of proposals.
   * @param limits.spanMax maximum distance from the lowest outstanding sequence number to the
   * newest, which limits the sequence numbers that the state machine stores for this controller.
   * @param limits.bytesMax maximum bytes of all commands.
   */
  constructor(limits: {
    readonly countMax: number
    readonly spanMax: number
    readonly bytesMax: number
  }) {
    this.#countMax = limits.countMax
    this.#bytesMax = limits.bytesMax
    this.#spanMax = limits.spanMax
    this.#counts = new FairShare(limits.countMax)
    this.#byteShares = new FairShare(limits.bytesMax)
  }

  get count(): number {
    return this.#window.size
  }

  get isFull(): boolean {
    const { size, next, lowest } = this.#window
    return size >= this.#countMax || next - lowest >= this.#spanMax || this.#bytes >= this.#bytesMax
  }

  /**
   * Whether this caller may add a proposal. The limit per caller prevents a single caller from
   * filling the queue.
   */
  hasRoomFor(caller: string): boolean {
    if (this.isFull) return false
    if (caller === '') return true
    return this.#counts.hasRoomFor(caller) && this.#byteShares.hasRoomFor(caller)
  }

  /** Sequence number of the next proposal. */
  get nextSequence(): number {
    return this.#window.next
  }

  /** The lowest outstanding sequence number. No caller waits for the results of lower numbers. */
  get lowest(): number {
    return this.#window.lowest
  }

  add(proposal: OutstandingProposal): void {
    assert(proposal.sequence === this.#window.next, 'sequences are given out in order')
    assert(!this.isFull, 'a full window takes no more')
    this.#window.add(proposal)
    this.#bytes += proposal.command.length
    this.#counts.take(proposal.caller)
    this.#byteShares.take(proposal.caller, proposal.command.length)
  }

  get(sequence: number): OutstandingProposal | undefined {
    return this.#window.get(sequence)
  }

  remove(sequence: number): void {
    const proposal = this.#window.remove(sequence)
    if (proposal === undefined) return
    const { command, caller } = proposal
    this.#bytes -= command.length
    this.#counts.giveBack(caller)
    this.#byteShares.giveBack(caller, command.length)
    releaseBuffer(command)
  }

  /** Proposals in a stage, in sequence order. */
  inStage(stage: Stage): OutstandingProposal[] {
    return [...this.#window.values()].filter((proposal) => proposal.stage === stage)
  }

  /**
   * Marks all sent proposals as `parked`, because they may be lost with their leader.
   * @returns whether there were any.
   */
  parkSent(): boolean {
    let hasParked = false
    for (const proposal of this.#window.values()) {
      if (proposal.stage !== 'sent') continue
      proposal.stage = 'parked'
      proposal.isFateOpen = true
      hasParked = true
    }
    return hasParked
  }

  /**
   * Rejects proposals past their deadline. All have the same timeout, so the proposal with the
   * lowest sequence number expires first.
   */
  expire(nowMs: number): void {
    while (this.#window.size > 0) {
      const oldest = requirePresent(
        this.#window.get(this.#window.lowest),
        'the lowest is outstanding',
      )
      if (oldest.deadlineMs > nowMs) return
      this.remove(oldest.sequence)
      oldest.reject(new Problem(verdictOf(oldest)))
    }
  }

  /** Rejects every outstanding proposal before its outcome is known. */
  abandon(): void {
    for (const proposal of Array.from(this.#window.values())) {
      this.remove(proposal.sequence)
      proposal.reject(new Problem(verdictOf(proposal)))
    }
  }
}

/** Error code for a proposal that is rejected without an outcome. */
function verdictOf(
  proposal: OutstandingProposal,
): 'OUTCOME_UNKNOWN' | 'SERVER_TOO_MANY_REQUESTS' | 'CLUSTER_NO_LEADER' {
  if (proposal.isFateOpen || proposal.stage === 'sent') return 'OUTCOME_UNKNOWN'
  return proposal.lastRefusal === 'OVERLOADED' ? 'SERVER_TOO_MANY_REQUESTS' : 'CLUSTER_NO_LEADER'
}
