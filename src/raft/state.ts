import { assert } from '../lib/assert.ts'
import type { Random } from '../lib/random.ts'
import { isVoter, listsStore, type Membership, MembershipHistory } from './configuration.ts'
import { Durability } from './durability.ts'
import type { DiskOperation, OutgoingMessage, ProposalResult } from './effects.ts'
import type { Proposal } from './input.ts'
import type { RaftLog } from './log.ts'
import { LogTime } from './log-time.ts'
import type { CoreOptions } from './options.ts'
import type { Progress } from './progress.ts'
import { ReadQueue } from './read-index.ts'
import type {
  Configuration,
  Index,
  Message,
  MessageBody,
  NodeId,
  Position,
  Role,
  Term,
} from './types.ts'

/** A transfer is bound to the leadership it began in: any change of role ends it. */
export interface Transfer {
  readonly target: NodeId
  readonly startedTick: number
  isTimeoutNowSent: boolean
}

/**
 * A term that is durable, and a position up to which the log was durable then. It says no more than
 * what is on disk and, while the term in memory is durable, no less than any acknowledgement that
 * has left: those wait for the same reports.
 */
export interface OnDisk {
  readonly term: Term
  readonly last: Position
}

export interface StateStart {
  readonly id: NodeId
  readonly storeId: Uint8Array | null
  readonly options: CoreOptions
  readonly random: Random
  readonly term: Term
  readonly votedFor: NodeId | null
  readonly log: RaftLog
  readonly membership: Membership
  readonly commit: Index
  readonly applied: Index
  readonly timeFloorMs: number
  readonly setbackMs: number
  readonly boot: number
  readonly owed: Position | null
}

/**
 * Everything one node knows (Raft paper, figure 2), shared by the subjects of this folder. Only
 * they may change it.
 */
export class RaftState {
  readonly id: NodeId
  /** Id of the disk below; null where disks are not told apart. */
  readonly storeId: Uint8Array | null
  readonly options: CoreOptions
  readonly random: Random
  /** Number of the start of the disk. */
  readonly boot: number
  readonly log: RaftLog
  readonly memberships: MembershipHistory
  readonly durability: Durability
  readonly logTime = new LogTime()
  readonly reads: ReadQueue

  role: Role = 'follower'
  leader: NodeId | null = null
  #term: Term
  #votedFor: NodeId | null
  /** State that this node would find if it started again now, as far as it knows. */
  onDisk: OnDisk
  /** Position up to which the log may lack what was promised: see owed.ts. */
  owed: Position | null
  /** Never falls. */
  commit: Index
  /**
   * Highest index known to equal this term's leader's log: commit follows the leader only up to
   * here.
   */
  matched: Index
  /** Handed to apply. */
  emitted: Index
  /** Reported applied. */
  applied: Index
  /** Stamps never fall below it: log time of the state, which may lie before the kept log. */
  timeFloorMs: number
  /** Stamps are so much ahead of the clocks, since log time was brought back; never falls. */
  setbackMs: number

  ticks = 0
  nowMs = 0
  /** Since a leader was heard, a vote was given, or an election began. */
  electionElapsedTicks = 0
  electionDeadlineTicks = 0
  /** Since a message of the current leader; what protects it from elections. */
  leaderSilenceTicks = 0
  heartbeatElapsedTicks = 0

  votes = new Map<NodeId, boolean>()
  /** Its own vote counts once this write is durable; null when no vote of its own is on its way. */
  ownVoteToken: number | null = null
  /** Whether this campaign was ordered by the leader (dissertation 3.10). */
  isTransferCampaign = false

  /** Leader only; the leader itself is not in it. */
  progress = new Map<NodeId, Progress>()
  /** Leader only: peers that the configuration in force leaves out, until it is committed. */
  departing: Progress[] = []
  uncommittedBytes = 0
  /** Proposals that arrived before a quorum's clocks were known. */
  held: Proposal[] = []
  heldBytes = 0
  transfer: Transfer | null = null
  isHeartbeatDue = false

  outbox: OutgoingMessage[] = []
  proposalResults: ProposalResult[] = []
  snapshotsWanted: NodeId[] = []
  disk: DiskOperation[] = []

  constructor(start: StateStart) {
    this.id = start.id
    this.storeId = start.storeId
    this.options = start.options
    this.random = start.random
    this.log = start.log
    this.memberships = new MembershipHistory(start.membership)
    this.memberships.append(start.log.slice(start.log.base.index + 1, Infinity, Infinity))
    this.durability = new Durability(start.log.lastIndex)
    this.reads = new ReadQueue(start.options.readsMax)
    this.#term = start.term
    this.#votedFor = start.votedFor
    this.onDisk = { term: start.term, last: start.log.last }
    this.commit = start.commit
    this.matched = start.commit
    // @guard 35-restart-skips-what-was-not-applied
    this.emitted = start.applied
    this.applied = start.applied
    this.timeFloorMs = start.timeFloorMs
    this.setbackMs = start.setbackMs
    this.boot = start.boot
    this.owed = start.owed
  }

  get term(): Term {
    return this.#term
  }

  get votedFor(): NodeId | null {
    return this.#votedFor
  }

  get configuration(): Configuration {
    return this.memberships.current.configuration
  }

  /**
   * Whether this disk may give votes. One that was wiped, rolled back or has just joined does not
   * know what was promised under its name, so it abstains until its own log has a configuration
   * that names this very disk: by then the leader has re-admitted it, and what its predecessor
   * promised is no longer counted on.
   *
   * An uncommitted configuration does not take the vote away: see {@link isEligible}.
   */
  get holdsVote(): boolean {
    const { id, storeId } = this
    if (storeId === null) return true
    const standing = this.memberships.notOvertaken(this.commit)
    // Index 0 has what the node was told before it had a log.
    // @guard vote-held-by-the-log-alone, 37-another-disk-votes-under-the-old-name
    return standing.some(({ index, record }) => index > 0 && listsStore(record, id, storeId))
  }

  /**
   * Whether this node campaigns. One that is left out by a configuration it does not know to be
   * committed still does (dissertation 4.2.2): of two voters the leader removes itself and dies
   * with the final entry on its own disk alone. The other, whose log is shorter, can then win
   * nothing without it, and it can win for both.
   *
   * One that has lost a part of its log does not, until it has made up for it (owed.ts).
   */
  get isEligible(): boolean {
    // @guard log-that-owes-does-not-campaign
    if (this.owed !== null) return false
    const standing = this.memberships.notOvertaken(this.commit)
    // @guard learner-never-campaigns, left-out-voter-campaigns
    return this.holdsVote && standing.some((one) => isVoter(one.configuration, this.id))
  }

  /**
   * Paper 5.4.2: what an earlier term left behind is only known committed once an entry of this
   * term is.
   */
  get hasCommittedInTerm(): boolean {
    return this.log.termAt(this.commit) === this.#term
  }

  /** Term and vote move together, into one write. A vote, once given in a term, stands. */
  setTermAndVote(term: Term, votedFor: NodeId | null): void {
    assert(term >= this.#term, 'a term never falls')
    assert(
      term > this.#term || this.#votedFor === null || this.#votedFor === votedFor,
      'one vote a term',
    )
    if (term === this.#term && votedFor === this.#votedFor) return
    this.#term = term
    this.#votedFor = votedFor
    // @guard term-and-vote-in-one-write
    this.durability.touchHardState()
  }

  /** @param afterToken the write that the message rests on; 0 for one that promises nothing. */
  send(to: NodeId, body: MessageBody, afterToken: number, term: Term = this.#term): void {
    this.outbox.push({ message: { ...body, from: this.id, to, term } as Message, afterToken })
  }

  /** Term, vote and entries not yet handed to the disk, as one write. */
  flushWrite(): void {
    const { durability, log } = this
    const isHardStateDirty = durability.isHardStateDirty
    if (!isHardStateDirty && durability.writtenIndex === log.lastIndex) return
    const entries = log.slice(durability.writtenIndex + 1, log.lastIndex, Infinity)
    const token = durability.issue(log.lastIndex, this.ticks)
    const hardState = isHardStateDirty ? { term: this.#term, votedFor: this.#votedFor } : null
    this.disk.push({ type: 'write', write: { token, hardState, entries, commit: this.commit } })
  }

  resetElectionTimer(): void {
    const { electionTimeoutTicks, electionTimeoutTicksMax } = this.options
    this.electionElapsedTicks = 0
    this.electionDeadlineTicks = this.random.integer(electionTimeoutTicks, electionTimeoutTicksMax)
  }
}
