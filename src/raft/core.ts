import { toBinary } from '@bufbuild/protobuf'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
} from '../../proto/gen/membership_pb.ts'
import { assert, requirePresent } from '../lib/assert.ts'
import type { Random } from '../lib/random.ts'
import { decodeMembership } from './configuration.ts'
import type { CoreStatus, CoreEffects } from './effects.ts'
import { onOwnVoteDurable, quietElectionTicks, tickElection } from './election.ts'
import type { CoreInput } from './input.ts'
import { RaftLog } from './log.ts'
import { changeConfiguration } from './membership-change.ts'
import { checkOptions, type CoreOptions } from './options.ts'
import { clearMissingTailIfCovered } from './missing-tail.ts'
import type { ProgressState } from './progress.ts'
import { propose } from './propose.ts'
import {
  onOwnEntriesDurable,
  onSnapshotFailed,
  onSnapshotSent,
  onUnreachable,
  quietLeaderTicks,
  sendDueMessages,
  tickLeader,
} from './replication.ts'
import { type DurableState, RaftState } from './state.ts'
import { startTransfer } from './transfer.ts'
import type { Entry, Index, NodeId, Position, RestoredLog, Term } from './types.ts'
import { onMessage } from './receive.ts'

export interface RaftCoreStart {
  readonly id: NodeId
  /**
   * Id of the disk that stores `log`. The right to vote belongs to this disk. Absent: disks are not
   * distinguished.
   */
  readonly storeId?: Uint8Array
  readonly options: CoreOptions
  /** Source of random election timeouts; use a different seed on every node. */
  readonly random: Random
  readonly log: RestoredLog
  /**
   * Position up to which the durable state has applied the log. `configuration` and `appliedTimeMs`
   * are the values at this position.
   */
  readonly applied: Position
  readonly configuration: ConfigurationRecord
  readonly appliedTimeMs: number
  /**
   * The number of ms by which log time was behind the timestamps of the entries at `applied`;
   * default 0.
   */
  readonly appliedSetbackMs?: number
}

/** Replication to one peer, as the leader knows it. */
export interface PeerStatus {
  readonly id: NodeId
  readonly state: ProgressState
  readonly matchIndex: Index
  readonly nextIndex: Index
  readonly bytesInFlight: number
  /**
   * Ticks since the peer last answered this leader; before that, since this leader added the peer.
   */
  readonly contactAgeTicks: number
  /**
   * The peer's clock minus the local clock, ms; null until the peer has answered a heartbeat of
   * this leader.
   */
  readonly clockOffsetMs: number | null
}

export interface FullCoreStatus extends CoreStatus {
  readonly id: NodeId
  readonly votedFor: NodeId | null
  readonly commit: Index
  readonly applied: Index
  readonly base: Position
  readonly last: Position
  readonly durableIndex: Index
  readonly onDisk: DurableState
  /**
   * False while a new term or vote, or a snapshot that replaces the log, is not durable yet.
   * `onDisk` may then be behind the position that this node has acknowledged.
   */
  readonly isOnDiskWhole: boolean
  /**
   * Position up to which the log may lack entries that this node acknowledged before the log was
   * damaged (see missing-tail.ts); null if nothing is missing.
   */
  readonly owed: Position | null
  readonly uncommittedBytes: number
  /** Size of the log entries in memory, bytes. */
  readonly logBytes: number
  readonly transferTarget: NodeId | null
  /**
   * Ticks since the current leader's last message; 0 if this node is the leader, null if there is
   * no leader.
   */
  readonly leaderSilenceTicks: number | null
  /** Peers of the leader, sorted by id; empty if this node is not the leader. */
  readonly peers: readonly PeerStatus[]
}

/**
 * One Raft node without clock, randomness, disk or network (Ongaro & Ousterhout 2014, "the paper";
 * Ongaro's dissertation). A driver passes inputs to the Raft core and carries out the effects that
 * the core returns. The core never waits, and lost, repeated or late messages never make it throw.
 * A failing assertion means a bug in this program, here or in a peer, and must stop the node.
 */
export class RaftCore {
  readonly #state: RaftState
  #lastStatus: CoreStatus | null = null

  private constructor(state: RaftState) {
    this.#state = state
  }

  /**
   * Restores the node from disk as a follower. A command creates the log before the first start:
   * with the first entries of a new cluster, or empty for a member that joins.
   * @throws {AssertionError} when the log begins after the state, so that the entries between them
   * are missing.
   */
  static restore(start: RaftCoreStart): RaftCore {
    checkOptions(start.options)
    const { applied, log: found } = start
    const configuration = toBinary(ConfigurationSchema, start.configuration)
    const membership = decodeMembership(applied.index, configuration)
    assert(
      found.base.index <= applied.index,
      `log begins after ${found.base.index}, past the state`,
    )
    let log = new RaftLog(found.base, [...found.entries])
    // True if the process stopped after it installed a snapshot and before it replaced the log. In
    // that case, the code below replaces the log.
    const isLogBehind = !log.matches(applied)
    // @guard log-that-a-snapshot-left-behind
    if (isLogBehind) log = new RaftLog(applied, [])
    const state = new RaftState({
      id: start.id,
      storeId: start.storeId ?? null,
      options: start.options,
      random: start.random,
      term: found.hardState.term,
      votedFor: found.hardState.votedFor,
      log,
      membership,
      commit: Math.max(applied.index, Math.min(found.commit, log.lastIndex)),
      applied: applied.index,
      timeFloorMs: start.appliedTimeMs,
      setbackMs: start.appliedSetbackMs ?? 0,
      boot: found.boot,
      owed: found.owed,
    })
    if (isLogBehind) {
      const token = state.durability.reset(applied.index, 0, 0)
      state.disk.push({ type: 'reset', position: applied, token })
    }
    // The current term is at least the last log term, even if the stored term was lost.
    // @guard term-no-less-than-that-of-the-log
    // @guard 04-entries-acknowledged-before-their-term-is-durable:3
    if (log.last.term > state.term) state.setTermAndVote(log.last.term, null)
    clearMissingTailIfCovered(state)
    state.resetElectionTimer()
    return new RaftCore(state)
  }

  step(input: CoreInput): void {
    const state = this.#state
    switch (input.type) {
      case 'tick':
        return tick(state, input.nowMs)
      case 'message':
        state.nowMs = input.nowMs
        return onMessage(state, input.message, input.storeId ?? null)
      case 'propose':
        return propose(state, input.proposals, input.nowMs)
      case 'changeConfiguration':
        return changeConfiguration(state, input)
      case 'read':
        return state.role === 'leader' ? state.reads.add(input.id) : state.reads.refuse(input.id)
      case 'transfer':
        return startTransfer(state, input.target)
      case 'persisted':
        return onPersisted(state, input.token)
      case 'applied':
        return onApplied(state, input)
      case 'compact':
        return compact(state, input.position)
      case 'snapshotSent':
        return onSnapshotSent(state, input.to)
      case 'snapshotFailed':
        return onSnapshotFailed(state, input.to)
      case 'unreachable':
        return onUnreachable(state, input.to)
    }
  }

  /**
   * Minimum number of coming ticks for which the Raft core has no work. A driver may skip these
   * ticks and pass them in together later. The number falls with each tick, and any other input may
   * change it.
   */
  get quietTicks(): number {
    const state = this.#state
    return state.role === 'leader' ? quietLeaderTicks(state) : quietElectionTicks(state)
  }

  /**
   * Returns the effects since the last call, or null when none are left. The driver must repeat the
   * call until it returns null.
   */
  takeEffects(): CoreEffects | null {
    const state = this.#state
    sendDueMessages(state)
    state.flushWrite()
    const status = this.#statusIfChanged()
    const committed = takeCommitted(state)
    const reads = state.reads.takeResults()
    const { disk, outbox: messages, proposalResults: proposals, snapshotsWanted } = state
    const isIdle =
      disk.length + messages.length + proposals.length + snapshotsWanted.length === 0 &&
      status === null &&
      committed.length + reads.length === 0
    if (isIdle) return null
    state.disk = []
    state.outbox = []
    state.proposalResults = []
    state.snapshotsWanted = []
    return { disk, messages, status, proposals, committed, reads, sendSnapshots: snapshotsWanted }
  }

  get status(): CoreStatus {
    const { role, term, leader, configuration, memberships, commit } = this.#state
    const { index: configurationIndex, record: configurationRecord } = memberships.current
    const isConfigurationCommitted = configurationIndex <= commit
    const committed = requirePresent(memberships.notOvertaken(commit)[0], 'one is always in force')
    return {
      role,
      term,
      leader,
      configuration,
      configurationRecord,
      configurationIndex,
      isConfigurationCommitted,
      committedConfigurationIndex: committed.index,
      committedConfigurationRecord: committed.record,
    }
  }

  get fullStatus(): FullCoreStatus {
    const state = this.#state
    const silenceTicks = state.role === 'leader' ? 0 : state.leaderSilenceTicks
    return {
      ...this.status,
      id: state.id,
      votedFor: state.votedFor,
      commit: state.commit,
      applied: state.applied,
      base: state.log.base,
      last: state.log.last,
      durableIndex: state.durability.durableIndex,
      onDisk: state.onDisk,
      isOnDiskWhole: isOnDiskWhole(state),
      owed: state.owed,
      uncommittedBytes: state.uncommittedBytes,
      logBytes: state.log.bytesBetween(state.log.base.index, state.log.lastIndex),
      transferTarget: state.transfer?.target ?? null,
      leaderSilenceTicks: state.leader === null ? null : silenceTicks,
      peers: peerStatuses(state),
    }
  }

  /**
   * The entries from..to. `from` must be after the base of the log. For checks and for inspections
   * of the log, not for the state machine.
   */
  entries(from: Index, to: Index): readonly Entry[] {
    return this.#state.log.slice(from, to, Infinity)
  }

  termAt(index: Index): Term | null {
    return this.#state.log.termAt(index)
  }

  #statusIfChanged(): CoreStatus | null {
    const now = this.status
    const last = this.#lastStatus
    const isSame =
      last !== null &&
      last.role === now.role &&
      last.term === now.term &&
      last.leader === now.leader &&
      last.configuration === now.configuration &&
      last.isConfigurationCommitted === now.isConfigurationCommitted &&
      last.committedConfigurationIndex === now.committedConfigurationIndex
    if (isSame) return null
    this.#lastStatus = now
    return now
  }
}

function tick(state: RaftState, nowMs: number): void {
  state.logTime.pass(nowMs)
  state.nowMs = nowMs
  state.ticks += 1
  if (state.role === 'leader') tickLeader(state)
  else tickElection(state)
}

function onPersisted(state: RaftState, token: number): void {
  const { durability } = state
  durability.persisted(token)
  if (isOnDiskWhole(state)) {
    const index = durability.durableIndex
    const last = { term: state.log.termAt(index) ?? 0, index }
    state.onDisk = { term: state.term, last }
    clearMissingTailIfCovered(state)
  }
  onOwnVoteDurable(state)
  if (state.role === 'leader') onOwnEntriesDurable(state)
}

function isOnDiskWhole({ durability, log }: RaftState): boolean {
  const isTermDurable =
    !durability.isHardStateDirty && durability.hardStateToken <= durability.durableToken
  // While a snapshot replaces the log, indexes before the base of the in-memory log refer to the
  // old log. The Raft core does not know how much of the old log is on disk.
  // @guard log-half-of-what-is-on-disk, term-half-of-what-is-on-disk
  return isTermDurable && durability.durableIndex >= log.base.index
}

function onApplied(
  state: RaftState,
  { index, timeMs, setbackMs = 0 }: Extract<CoreInput, { readonly type: 'applied' }>,
): void {
  assert(index <= state.emitted, `entry ${index} was not handed to apply`)
  state.applied = Math.max(state.applied, index)
  state.timeFloorMs = Math.max(state.timeFloorMs, timeMs)
  state.setbackMs = Math.max(state.setbackMs, setbackMs)
}

function compact(state: RaftState, position: Position): void {
  // @guard 16-configuration-in-force-once-applied:2
  if (position.index <= state.log.base.index) return
  assert(position.index <= state.applied, 'only what is applied is compacted')
  // Stores the latest timestamp, so that timestamps do not decrease after a compaction has removed
  // the entry with that timestamp.
  state.timeFloorMs = Math.max(state.timeFloorMs, state.log.at(position.index).timeMs)
  state.log.compact(position)
  state.memberships.compact(position.index)
  state.disk.push({ type: 'compact', position })
}

function takeCommitted(state: RaftState): readonly Entry[] {
  const { log, applied, emitted } = state
  const { applyLagEntriesMax, applyBytesMax } = state.options
  const window = applied + applyLagEntriesMax
  // @guard apply-after-own-disk, 34-leader-counts-itself-before-its-disk:2
  const to = Math.min(state.commit, state.durability.durableIndex, window)
  // Entries that the Raft core has passed to the state machine occupy memory a second time until
  // they are applied, so their bytes are limited.
  const room = 2 * applyBytesMax - log.bytesBetween(applied, emitted)
  if (to <= emitted || room <= 0) return []
  const entries = log.slice(emitted + 1, to, Math.min(applyBytesMax, room))
  state.emitted += entries.length
  return entries
}

function peerStatuses(state: RaftState): readonly PeerStatus[] {
  const peers = [...state.progress.values()].map((progress) => ({
    id: progress.id,
    state: progress.state,
    matchIndex: progress.matchIndex,
    nextIndex: progress.nextIndex,
    bytesInFlight: progress.bytesInFlight,
    contactAgeTicks: state.ticks - progress.lastContactTick,
    clockOffsetMs: state.logTime.offsetMs(progress.id),
  }))
  return peers.sort((a, b) => (a.id < b.id ? -1 : 1))
}
