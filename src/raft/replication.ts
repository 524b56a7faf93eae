import { assert } from '../lib/assert.ts'
import { advanceCommit } from './commit.ts'
import { ENTRY_HEADER_BYTES } from './entry-codec.ts'
import { sendHeartbeat } from './heartbeat.ts'
import type { Progress } from './progress.ts'
import { quorumValue } from './quorum.ts'
import { releaseHeldProposals } from './propose.ts'
import { becomeFollower } from './role.ts'
import type { RaftState } from './state.ts'
import { continueTransfer, tickTransfer } from './transfer.ts'
import type { Entry, Index, Message, Position } from './types.ts'

type AppendResponse = Extract<Message, { type: 'appendResponse' }>
type HeartbeatResponse = Extract<Message, { type: 'heartbeatResponse' }>

/**
 * Does the timed work of a leader at each tick. This file has the leader's part of replication
 * (paper 5.3); follow.ts has the follower's part.
 */
export function tickLeader(state: RaftState): void {
  // @guard check-quorum, 21-neither-pre-vote-nor-quorum-check:3
  if (!hasQuorumContact(state)) {
    // Without contact to a quorum, this leader steps down, so that clients do not wait for it
    // (dissertation 6.2): the other nodes may have elected another leader.
    becomeFollower(state, state.term, null)
    return
  }
  state.heartbeatElapsedTicks += 1
  if (state.heartbeatElapsedTicks >= state.options.heartbeatTicks) {
    state.heartbeatElapsedTicks = 0
    state.isHeartbeatDue = true
  }
  expireSnapshots(state)
  tickTransfer(state)
  releaseHeldProposals(state)
}

/**
 * The leader's part of `RaftCore.quietTicks`. Apart from heartbeats, all timed work of a leader may
 * wait for the next heartbeat: stepping down, and the timeouts for a snapshot, a transfer or a
 * stalled disk.
 */
export function quietLeaderTicks({ options, heartbeatElapsedTicks }: RaftState): number {
  return Math.max(0, options.heartbeatTicks - heartbeatElapsedTicks - 1)
}

function hasQuorumContact(state: RaftState): boolean {
  const contactTick = quorumValue(state.configuration, (id) =>
    id === state.id ? state.ticks : (state.progress.get(id)?.lastContactTick ?? 0),
  )
  return state.ticks - contactTick <= state.options.electionTimeoutTicks
}

/**
 * Treats a snapshot that was sent but not acknowledged in time as lost, and probes the peer's
 * position again.
 */
function expireSnapshots(state: RaftState): void {
  for (const progress of state.progress.values()) {
    if (progress.state !== 'snapshot' || progress.snapshotSentTick === null) continue
    const ageTicks = state.ticks - progress.snapshotSentTick
    if (ageTicks >= state.options.electionTimeoutTicks) progress.becomeProbe(0)
  }
}

/**
 * Sends everything that is due to the peers after all inputs of one turn, so that these inputs
 * share messages.
 */
export function sendDueMessages(state: RaftState): void {
  if (state.role !== 'leader') return
  beginReadRound(state)
  const shared: SharedSlice = { from: 0, entries: [] }
  for (const progress of state.progress.values()) {
    sendAppends(state, progress, shared)
    sendCommit(state, progress)
  }
  state.isHeartbeatDue = false
}

/**
 * Sends the commit index as soon as it advances, because a controller responds to a write only once
 * it has applied the write. Neither a notice nor a heartbeat contains an index beyond the peer's
 * match index.
 */
function sendCommit(state: RaftState, progress: Progress): void {
  // @guard heartbeat-commit-limited-to-the-peer, 07-follower-commits-past-what-matched:1
  // @guard 38-commit-told-beyond-the-log:1
  const commit = Math.min(state.commit, progress.matchIndex)
  const isAdvance = commit > progress.commitSent
  progress.commitSent = Math.max(progress.commitSent, commit)
  // @guard commit-is-told-at-once
  if (state.isHeartbeatDue) sendHeartbeat(state, progress)
  else if (isAdvance) {
    // The notice needs no response: otherwise, a single write would take four messages per peer
    // instead of three.
    state.send(progress.id, { type: 'commitNotice', commit }, 0)
  }
}

function beginReadRound(state: RaftState): void {
  // @guard own-term-gate-on-reads, 23-read-before-an-own-commit
  if (!state.reads.hasWaiting || !state.hasCommittedInTerm) return
  // The next heartbeat starts a new round for the reads of the unconfirmed round and for the
  // waiting reads.
  if (state.reads.isRoundOut && !state.isHeartbeatDue) return
  state.reads.begin(state.commit)
  state.isHeartbeatDue = true
  // @guard 25-read-by-lease
  confirmReads(state)
}

function confirmReads(state: RaftState): void {
  const acked = quorumValue(state.configuration, (id) =>
    id === state.id ? state.reads.sequence : (state.progress.get(id)?.ackedReadSequence ?? 0),
  )
  // @guard read-is-confirmed-by-a-quorum
  state.reads.confirm(acked)
}

/**
 * Entries that the leader sends to successive peers with the same next index. They share one array,
 * so that the mesh packs it only once.
 */
interface SharedSlice {
  from: Index
  entries: readonly Entry[]
}

function sendAppends(state: RaftState, progress: Progress, shared: SharedSlice): void {
  const { log, options } = state
  while (isSendPossible(state, progress)) {
    const from = progress.nextIndex
    const previousTerm = log.termAt(from - 1)
    if (previousTerm === null) {
      requestSnapshot(state, progress)
      return
    }
    if (shared.from !== from) {
      shared.entries = log.slice(from, log.lastIndex, options.appendBytesMax)
      shared.from = from
    }
    const { entries } = shared
    sendAppend(state, progress, { term: previousTerm, index: from - 1 }, entries)
    if (progress.state === 'probe') {
      progress.isProbeOut = true
      progress.lastProbeTick = state.ticks
    } else progress.addInflight(from + entries.length - 1, totalBytes(entries))
    // A follower uses the commit index in this request only up to the last entry of the request.
    const commitSent = Math.min(state.commit, from + entries.length - 1)
    if (progress.state === 'replicate')
      progress.commitSent = Math.max(progress.commitSent, commitSent)
  }
}

function isSendPossible(state: RaftState, progress: Progress): boolean {
  switch (progress.state) {
    case 'probe':
      return !progress.isProbeOut
    case 'replicate':
      return (
        progress.nextIndex <= state.log.lastIndex &&
        progress.messagesInFlight < state.options.windowMessagesMax &&
        progress.bytesInFlight < state.options.windowBytesMax
      )
    case 'snapshot':
      return false
  }
}

function totalBytes(entries: readonly Entry[]): number {
  let bytes = entries.length * ENTRY_HEADER_BYTES
  for (const entry of entries) bytes += entry.data.length
  return bytes
}

/**
 * Sends entries, possibly before they are durable on the leader's own disk: disk and network work
 * in parallel (dissertation 10.2.1).
 */
function sendAppend(
  state: RaftState,
  progress: Progress,
  previous: Position,
  entries: readonly Entry[],
): void {
  const { commit } = state
  state.send(progress.id, { type: 'appendRequest', previous, commit, entries }, 0)
}

/**
 * Requests a snapshot, but only for a peer that responded recently, because sending a snapshot is
 * expensive.
 */
function requestSnapshot(state: RaftState, progress: Progress): void {
  const silenceTicks = state.ticks - progress.lastContactTick
  if (silenceTicks >= state.options.electionTimeoutTicks) {
    progress.isProbeOut = true
    return
  }
  progress.becomeSnapshot()
  state.snapshotsWanted.push(progress.id)
}

/**
 * Updates the follower's progress after an acknowledgment or a refusal, and commits entries that a
 * quorum has.
 */
export function onAppendResponse(state: RaftState, message: AppendResponse): void {
  const progress = state.progress.get(message.from)
  if (state.role !== 'leader' || progress === undefined) return
  progress.lastContactTick = state.ticks
  if (message.success) onMatch(state, progress, message.matchIndex)
  else onRefused(state, progress, message)
}

function onMatch(state: RaftState, progress: Progress, matchIndex: Index): void {
  if (matchIndex > state.log.lastIndex) return
  const isAdvance = progress.acknowledge(matchIndex)
  const isInLog = progress.matchIndex >= state.log.base.index
  if (progress.state === 'probe' || (progress.state === 'snapshot' && isInLog && isAdvance)) {
    progress.becomeReplicate()
  }
  if (!isAdvance) return
  continueTransfer(state)
  // This call is last, because this node may step down in it.
  advanceCommit(state)
}

/**
 * The follower refused an append, because its log does not contain the entry before those that were
 * sent. A leader that was sending without waiting first probes after the match index. A probing
 * leader goes back by one whole term of the follower's log per round, never below the match index.
 */
function onRefused(state: RaftState, progress: Progress, message: AppendResponse): void {
  const { rejectedIndex, hint, hasLost = false } = message
  // @guard refusal-below-the-match, 10-late-refusal-takes-next-back:1
  if (rejectedIndex <= progress.matchIndex) {
    // @guard lost-log-is-sent-again
    if (!hasLost || progress.state === 'snapshot') return
    progress.forgetMatch()
    progress.becomeProbe(rejectedIndex + 1)
  }
  // @guard 10-late-refusal-takes-next-back:2
  if (progress.state === 'replicate') {
    progress.becomeProbe(progress.matchIndex + 1)
    return
  }
  if (progress.state !== 'probe' || rejectedIndex !== progress.nextIndex - 1) return
  const agreed = state.log.lastPositionUpToTerm(hint.index, hint.term)
  // @guard 10-late-refusal-takes-next-back:3
  progress.becomeProbe(Math.min(rejectedIndex, agreed.index + 1))
}

/**
 * Records the contact, the clock and the missing tail of the peer, repeats a lost request, and
 * confirms pending reads once a quorum has answered.
 */
export function onHeartbeatResponse(state: RaftState, message: HeartbeatResponse): void {
  const progress = state.progress.get(message.from)
  if (state.role !== 'leader' || progress === undefined) return
  progress.lastContactTick = state.ticks
  // @guard read-sequence-of-an-answer
  progress.ackedReadSequence = Math.max(progress.ackedReadSequence, message.readSequence)
  progress.owingBoot = message.owingBoot ?? null
  state.logTime.observe(message.from, message.clockMs, state.nowMs)
  probeForLoss(state, progress)
  confirmReads(state)
  releaseHeldProposals(state)
}

/**
 * Repeats a probe that got no response. To detect a lost request in state `replicate`, the leader
 * asks whether the follower has everything that was sent. A follower that lacks some of it refuses
 * immediately; otherwise its response only waits for its disk. At most one probe per heartbeat.
 */
function probeForLoss(state: RaftState, progress: Progress): void {
  if (state.ticks - progress.lastProbeTick < state.options.heartbeatTicks) return
  // @guard lost-probe-is-sent-again
  if (progress.state === 'probe') progress.isProbeOut = false
  if (progress.state !== 'replicate') return
  // A peer with a missing tail may lack entries that it acknowledged before. Without this probe,
  // the leader would not notice.
  // @guard log-that-owes-is-asked-for
  if (progress.matchIndex >= progress.nextIndex - 1 && progress.owingBoot === null) return
  progress.lastProbeTick = state.ticks
  const previousTerm = state.log.termAt(progress.nextIndex - 1)
  if (previousTerm === null) {
    // The log was compacted beyond the requests in flight, so this probe is impossible; the leader
    // restarts from the match index.
    progress.becomeProbe(0)
    return
  }
  sendAppend(state, progress, { term: previousTerm, index: progress.nextIndex - 1 }, [])
}

/**
 * Called when the snapshot was transferred. The peer confirms later that it has installed the
 * snapshot.
 */
export function onSnapshotSent(state: RaftState, to: string): void {
  const progress = state.progress.get(to)
  if (progress?.state === 'snapshot') progress.snapshotSentTick = state.ticks
}

/**
 * Called when the transfer failed. The leader tries again when the peer next answers a heartbeat.
 */
export function onSnapshotFailed(state: RaftState, to: string): void {
  const progress = state.progress.get(to)
  if (progress?.state !== 'snapshot') return
  progress.becomeProbe(0)
  progress.isProbeOut = true
}

/** Stops pipelining to a peer whose connection failed. */
export function onUnreachable(state: RaftState, to: string): void {
  const progress = state.progress.get(to)
  if (progress?.state === 'replicate') progress.becomeProbe(0)
}

/** Called when more entries are durable on the leader's own disk. */
export function onOwnEntriesDurable(state: RaftState): void {
  assert(state.role === 'leader', 'only a leader counts its own disk')
  advanceCommit(state)
}
