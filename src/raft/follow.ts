import { assert } from '../lib/assert.ts'
import { raiseCommitIndex } from './commit.ts'
import { decodeMembership } from './configuration.ts'
import { applyAttestation } from './missing-tail.ts'
import { becomeFollower } from './role.ts'
import type { RaftState } from './state.ts'
import type { Entry, Index, Message, NodeId, Position } from './types.ts'

type AppendRequest = Extract<Message, { type: 'appendRequest' }>
type HeartbeatRequest = Extract<Message, { type: 'heartbeatRequest' }>
type CommitNotice = Extract<Message, { type: 'commitNotice' }>
type SnapshotMessage = Extract<Message, { type: 'snapshot' }>

/** Records that a message from this term's leader has arrived. */
function noteLeader(state: RaftState, leader: NodeId): void {
  assert(state.role !== 'leader', `${leader} and this node lead in one term`)
  assert(state.leader === null || state.leader === leader, 'one leader a term')
  if (state.role !== 'follower' || state.leader === null) {
    becomeFollower(state, state.term, leader)
    return
  }
  // @guard heartbeat-protects-the-leader
  state.leaderSilenceTicks = 0
  // @guard heartbeat-restarts-the-wait
  state.electionElapsedTicks = 0
}

/**
 * Raises the commit index to the leader's, but not beyond the index up to which this log is known
 * to match the leader's.
 */
export function onHeartbeatRequest(state: RaftState, message: HeartbeatRequest): void {
  noteLeader(state, message.from)
  followCommit(state, message.commit)
  applyAttestation(state, message.attested)
  const body = {
    type: 'heartbeatResponse',
    readSequence: message.readSequence,
    clockMs: state.nowMs,
    ...(state.owed === null ? {} : { owingBoot: state.boot }),
  } as const
  // The response depends only on a durable term. If it also waited for writes of entries, the
  // leader would mistake a node with a slow disk for a failed node.
  // @guard heartbeat-reply-after-the-disk
  state.send(message.from, body, state.durability.hardStateToken)
}

/**
 * Advances the commit index between heartbeats, because a controller responds to a write only once
 * it has applied the write.
 */
export function onCommitNotice(state: RaftState, message: CommitNotice): void {
  noteLeader(state, message.from)
  followCommit(state, message.commit)
}

/**
 * Appends the leader's entries if the log contains the entry before them; otherwise responds with a
 * position at which the leader should retry. Drops a malformed request, and a request with entries
 * while too many committed entries are not applied.
 */
export function onAppendRequest(state: RaftState, message: AppendRequest): void {
  noteLeader(state, message.from)
  const { from, commit } = message
  if (!isConsecutive(message.previous, message.entries, message.term)) return
  if (isFull(state) && message.entries.length > 0) return
  // @guard append-that-begins-before-the-commit, 30-append-across-the-snapshot-boundary
  const { previous, entries } = withoutCommitted(state, message)
  if (previous.index < state.commit) {
    acceptThrough(state, from, state.commit, commit)
    return
  }
  // @guard append-needs-the-entry-before-it
  if (!state.log.matches(previous)) {
    refuse(state, from, previous)
    return
  }
  appendNew(state, entries)
  acceptThrough(state, from, previous.index + entries.length, commit)
}

/**
 * Whether this follower has too many bytes of entries that are committed but not applied. It then
 * drops further entries until the state machine catches up, and the leader sends them again.
 */
function isFull({ log, applied, commit, options }: RaftState): boolean {
  return log.bytesBetween(applied, commit) >= options.uncommittedBytesMax
}

/**
 * Whether the entries follow `previous` and each other without a gap, and their terms neither
 * decrease nor exceed the term of the message. A fault fails no assertion, because the entries come
 * from a peer: an invalid request is dropped like a lost request.
 */
function isConsecutive(previous: Position, entries: readonly Entry[], term: number): boolean {
  let { index, term: lastTerm } = previous
  for (const entry of entries) {
    if (entry.index !== index + 1 || entry.term < lastTerm || entry.term > term) return false
    index = entry.index
    lastTerm = entry.term
  }
  return true
}

/**
 * Skips entries at or before the commit index, with which a late request may begin. They are equal
 * on both nodes (leader completeness). A request that ends before the commit index stays unchanged.
 */
function withoutCommitted(
  state: RaftState,
  message: AppendRequest,
): { readonly previous: Position; readonly entries: readonly Entry[] } {
  const { previous, entries } = message
  const skipped = state.commit - previous.index
  if (skipped <= 0 || skipped > entries.length) return { previous, entries }
  const term = entries[skipped - 1]?.term ?? 0
  assert(
    state.log.matches({ term, index: state.commit }),
    `${message.from} has another entry at committed index ${state.commit}`,
  )
  return { previous: { term, index: state.commit }, entries: entries.slice(skipped) }
}

/**
 * Replaces entries only from the first conflicting entry on. A late, shorter request must not
 * truncate entries that were acknowledged after it was sent (paper 5.3, figure 2, AppendEntries 3).
 */
function appendNew(state: RaftState, entries: readonly Entry[]): void {
  const { log } = state
  let known = 0
  for (const entry of entries) {
    // @guard only-a-conflict-cuts-the-log, 08-every-append-truncates
    if (!log.matches(entry)) break
    known += 1
  }
  const first = entries[known]
  if (first === undefined) return
  if (first.index <= log.lastIndex) truncate(state, first.index)
  const news = known === 0 ? entries : entries.slice(known)
  log.append(news)
  // @guard 16-configuration-in-force-once-applied:1
  state.memberships.append(news)
}

function truncate(state: RaftState, from: Index): void {
  assert(from > state.commit, `entry ${from} is committed and cannot be replaced`)
  state.log.truncate(from)
  state.durability.truncate(from)
  // @guard rollback-of-a-truncated-configuration, 18-truncated-configuration-stays-in-force
  state.memberships.truncate(from)
}

/**
 * Acknowledges the entries up to `index` once they are durable, because an acknowledgment means
 * "on disk".
 */
function acceptThrough(state: RaftState, leader: NodeId, index: Index, leaderCommit: Index): void {
  state.matched = Math.max(state.matched, index)
  followCommit(state, leaderCommit)
  const hint = { term: 0, index: 0 }
  const body = {
    type: 'appendResponse',
    success: true,
    matchIndex: index,
    hint,
    rejectedIndex: 0,
  } as const
  // @guard append-reply-after-the-disk
  state.send(leader, body, state.durability.tokenFor(index))
}

/**
 * Raises the commit index, but never beyond the index up to which this log is known to match the
 * leader's log (paper 5.3, figure 2).
 */
function followCommit(state: RaftState, leaderCommit: Index): void {
  // @guard commit-limited-to-what-matches, 07-follower-commits-past-what-matched:4
  // @guard 38-commit-told-beyond-the-log:4
  raiseCommitIndex(state, Math.min(leaderCommit, state.matched))
}

/**
 * Refuses an append. The response contains a position at which the logs may agree: the last local
 * entry at or before `previous` whose term is not later than the term of `previous`, or the base of
 * the log.
 */
function refuse(state: RaftState, leader: NodeId, previous: Position): void {
  // @guard refusal-tells-where-to-look
  const hint = state.log.lastPositionUpToTerm(previous.index, previous.term)
  const body = {
    type: 'appendResponse',
    success: false,
    matchIndex: 0,
    hint,
    rejectedIndex: previous.index,
    ...(state.owed === null ? {} : { hasLost: true }),
  } as const
  // @guard append-refusal-after-the-disk
  state.send(leader, body, state.durability.hardStateToken)
}

/**
 * Responds to a leader of an earlier term. The response contains the newer term, so that the old
 * leader steps down, even if few other nodes can reach it.
 */
export function respondToStaleLeader(state: RaftState, leader: NodeId): void {
  refuse(state, leader, { term: 0, index: 0 })
}

/**
 * A received snapshot replaces log and state, unless this node already has everything in it (paper
 * 7). A snapshot contains only committed entries, so a snapshot from a leader of an earlier term is
 * equally valid: an election does not force the transfer to start again.
 */
export function onSnapshot(state: RaftState, message: SnapshotMessage): void {
  if (message.term === state.term) noteLeader(state, message.from)
  const { position } = message
  // @guard snapshot-of-what-is-there, 29-old-snapshot-is-installed
  if (position.index > state.commit) {
    // @guard snapshot-of-a-prefix-keeps-the-log
    if (!state.log.matches(position)) install(state, position, message.configuration)
    state.matched = Math.max(state.matched, position.index)
    raiseCommitIndex(state, position.index)
  }
  if (state.leader !== null && state.role !== 'leader') {
    acceptThrough(state, state.leader, state.commit, state.commit)
  }
}

function install(state: RaftState, position: Position, configuration: Uint8Array): void {
  // Issues the pending write although the snapshot replaces its entries, because messages may
  // already wait for that write.
  state.flushWrite()
  // The snapshot discards the log, and with it a configuration that is not committed.
  // @guard uncommitted-configuration-goes-with-a-snapshot, 17-configuration-outlives-a-snapshot
  state.memberships.reset(decodeMembership(position.index, configuration))
  const token = state.durability.reset(position.index, state.commit, state.ticks)
  state.log.reset(position)
  state.disk.push({ type: 'restore', position, configuration }, { type: 'reset', position, token })
  state.emitted = position.index
  state.applied = position.index
}
