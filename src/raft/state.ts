import { assert } from '../lib/assert.ts'
import type { Random } from '../lib/random.ts'
import { isVoter, hasMemberStore, type Membership, MembershipHistory } from './configuration.ts'
import { DurabilityTracker } from './durability.ts'
import type { DiskOperation, OutgoingMessage, ProposalResult } from './effects.ts'
import type { Proposal } from './input.ts'
import type { RaftLog } from './log.ts'
import { LogTime } from './log-time.ts'
import type { CoreOptions } from './options.ts'
import type { Progress } from './progress.ts'
import { LinearizableReadQueue } from './read-index.ts'
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

/**
 * A leadership transfer. It ends at the latest with the leadership in which it began, that is, at
 * any change of role.
 */
interface Transfer {
  readonly target: NodeId
  readonly startedTick: number
  isTimeoutNowSent: boolean
}

/**
 * A durable term, and a position up to which the log is durable; the disk may contain more. While
 * the term in memory is durable and no snapshot is replacing the log, this position covers every
 * acknowledgment that this node has sent, because acknowledgments wait for the same reports of the
 * disk.
 */
export interface DurableState {
  readonly term: Term
  readonly last: Position
}

interface StateStart {
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
 * All state of one node (Raft paper, figure 2). The files of this folder share this state, and only
 * they may change it.
 */
export class RaftState {
  readonly id: NodeId
  /** Id of the disk that stores the log; null where disks are not distinguished. */
  readonly storeId: Uint8Array | null
  readonly options: CoreOptions
  readonly random: Random
  /** Number of starts with this disk so far. */
  readonly boot: number
  readonly log: RaftLog
  readonly memberships: MembershipHistory
  readonly durability: DurabilityTracker
  readonly logTime = new LogTime()
  readonly reads: LinearizableReadQueue

  role: Role = 'follower'
  leader: NodeId | null = null
  #term: Term
  #votedFor: NodeId | null
  /** Term and position that a restart would find on disk, as far as this node knows. */
  onDisk: DurableState
  /**
   * Position up to which the log may lack entries that this node acknowledged before the log was
   * damaged (see missing-tail.ts); null if nothing is missing.
   */
  owed: Position | null
  /** Highest index known to be committed; never decreases. */
  commit: Index
  /**
   * Highest index up to which the log is known to match the log of this term's leader; a follower
   * commits only up to this index.
   */
  matched: Index
  /**
   * Index through which the state machine has the log: the Raft core passed it the entries, or its
   * stored state or a snapshot contains them.
   */
  emitted: Index
  /**
   * Index through which the log is applied: reported as applied, or contained in the stored state
   * at the start or in a snapshot.
   */
  applied: Index
  /**
   * Lower bound for timestamps: the timestamp up to which entries have been applied. Entries in the
   * retained log do not suffice, because the state may be newer than all of them.
   */
  timeFloorMs: number
  /**
   * The number of ms by which timestamps are ahead of the clocks because an operator reset log
   * time; never decreases.
   */
  setbackMs: number

  ticks = 0
  nowMs = 0
  /**
   * Ticks since the election timer was last reset: by a message of the leader, a granted vote, a
   * change of role, or a timeout at which this node may not campaign.
   */
  electionElapsedTicks = 0
  electionDeadlineTicks = 0
  /**
   * Ticks since the current leader's last message; until enough have passed, this node votes for
   * another leader only in a leadership transfer.
   */
  leaderSilenceTicks = 0
  heartbeatElapsedTicks = 0

  votes = new Map<NodeId, boolean>()
  /** The node's own vote counts once this write is durable; null when no such vote is pending. */
  ownVoteToken: number | null = null
  /** Whether the leader requested this campaign (dissertation 3.10). */
  isTransferCampaign = false

  /** Leader only: replication progress of each peer. */
  progress = new Map<NodeId, Progress>()
  /**
   * Leader only: peers that the current configuration removes; emptied when that configuration is
   * committed.
   */
  departing: Progress[] = []
  uncommittedBytes = 0
  /** Proposals that wait until the clocks of a quorum are known. */
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
    this.durability = new DurabilityTracker(start.log.lastIndex)
    this.reads = new LinearizableReadQueue(start.options.readsMax)
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
   * Whether this disk may vote. A disk that was wiped, was rolled back or has just joined does not
   * contain the promises that the node made with an earlier disk. It does not vote until its own
   * log contains a configuration that lists this disk. The leader has then re-admitted the disk and
   * relies no more on the promises of the previous disk.
   *
   * An uncommitted configuration does not revoke the right to vote: see {@link isEligible}.
   */
  get holdsVote(): boolean {
    const { id, storeId } = this
    if (storeId === null) return true
    const standing = this.memberships.notOvertaken(this.commit)
    // Index 0 is the configuration that the node had before it had a log.
    // @guard vote-held-by-the-log-alone, 37-another-disk-votes-under-the-old-name
    return standing.some(({ index, record }) => index > 0 && hasMemberStore(record, id, storeId))
  }

  /**
   * Whether this node may campaign. A node that an uncommitted configuration removes may still
   * campaign (dissertation 4.2.2). Example: a leader of two voters removes itself and crashes with
   * the final entry only on its own disk. The other voter's log is shorter, so it cannot win
   * without the removed node's vote, but the removed node can win with both votes.
   *
   * A node that lost a part of its log must not campaign until it has recovered that part
   * (missing-tail.ts).
   */
  get isEligible(): boolean {
    // @guard log-that-owes-does-not-campaign
    if (this.owed !== null) return false
    const standing = this.memberships.notOvertaken(this.commit)
    // @guard learner-never-campaigns, left-out-voter-campaigns
    return this.holdsVote && standing.some((one) => isVoter(one.configuration, this.id))
  }

  /**
   * Whether an entry of this term is committed. Before that, a leader does not know which entries
   * of earlier terms after its commit index are committed (paper 5.4.2).
   */
  get hasCommittedInTerm(): boolean {
    return this.log.termAt(this.commit) === this.#term
  }

  /** Sets term and vote in one write. Within a term, a vote cannot change. */
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

  /**
   * Sends a message once a write is durable.
   * @param afterToken token of the write on which the message depends; 0 when it promises nothing.
   */
  send(to: NodeId, body: MessageBody, afterToken: number, term: Term = this.#term): void {
    this.outbox.push({ message: { ...body, from: this.id, to, term } as Message, afterToken })
  }

  /** Passes term, vote and new entries to the disk as one write. */
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
