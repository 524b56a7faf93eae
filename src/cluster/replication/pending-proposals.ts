import { assert, present } from '../../lib/assert.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { releaseBuffer } from '../../lib/bounds/release-buffer.ts'
import { SequenceWindow } from '../../lib/sequence-window.ts'
import { Problem } from '../../lib/problems.ts'
import type { TraceContext } from '../../lib/trace-context.ts'
import type { Applied } from '../../ports/proposer.ts'
import type { RefusalCode } from '../link.ts'

/**
 * queued: leaves with the next batch. sent: handed to the host and not refused since. parked:
 * refused, or its leader is gone; leaves again once a leader is elected.
 */
type Stage = 'queued' | 'sent' | 'parked'

export interface OutstandingProposal {
  readonly sequence: number
  readonly command: Uint8Array
  /** Trace of the request that it is for. */
  readonly trace?: TraceContext
  /**
   * Caller that shares the room with others; '': a controller itself, which is never held to a
   * part.
   */
  readonly caller: string
  readonly deadlineMs: number
  readonly resolve: (applied: Applied) => void
  readonly reject: (problem: Problem) => void
  stage: Stage
  /**
   * An attempt was handed over and its fate never learned: only its outcome, not a refusal, can
   * tell now.
   */
  isFateOpen: boolean
  lastRefusal: RefusalCode | null
}

/**
 * The proposals of this controller that have no outcome yet. A sequence that is given up leaves for
 * good: commands proposed later say so by their lowest outstanding sequence, and apply passes the
 * given-up one over from then on.
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
   * @param limits.countMax proposals at once.
   * @param limits.spanMax sequences from the lowest outstanding to the newest: what apply has to
   * remember of us.
   * @param limits.bytesMax of all commands: none is taken once there are as many.
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

  /** Whether the next proposal may be that caller's: nobody takes the room of all. */
  hasRoomFor(caller: string): boolean {
    if (this.isFull) return false
    if (caller === '') return true
    return this.#counts.hasRoomFor(caller) && this.#byteShares.hasRoomFor(caller)
  }

  /** The sequence that the next proposal gets. */
  get nextSequence(): number {
    return this.#window.next
  }

  /** Results below it are never asked for again. */
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

  /** Proposals in the order of their sequences. */
  inStage(stage: Stage): OutstandingProposal[] {
    return [...this.#window.values()].filter((proposal) => proposal.stage === stage)
  }

  /** All attempts under way may be lost with their leader. @returns whether there were any. */
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
   * Gives up those past their deadline; it is the same wait for all, so the oldest sequence expires
   * first.
   */
  expire(nowMs: number): void {
    while (this.#window.size > 0) {
      const oldest = present(this.#window.get(this.#window.lowest), 'the lowest is outstanding')
      if (oldest.deadlineMs > nowMs) return
      this.remove(oldest.sequence)
      oldest.reject(new Problem(verdictOf(oldest)))
    }
  }

  /** Gives up everything, as nothing will be applied here any more. */
  abandon(): void {
    for (const proposal of Array.from(this.#window.values())) {
      this.remove(proposal.sequence)
      proposal.reject(new Problem(verdictOf(proposal)))
    }
  }
}

/** Verdict that is certain about a proposal without an outcome. */
function verdictOf(
  proposal: OutstandingProposal,
): 'OUTCOME_UNKNOWN' | 'SERVER_TOO_MANY_REQUESTS' | 'CLUSTER_NO_LEADER' {
  if (proposal.isFateOpen || proposal.stage === 'sent') return 'OUTCOME_UNKNOWN'
  return proposal.lastRefusal === 'OVERLOADED' ? 'SERVER_TOO_MANY_REQUESTS' : 'CLUSTER_NO_LEADER'
}
