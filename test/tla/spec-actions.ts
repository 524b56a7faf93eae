import {
  configIndex,
  configOf,
  diskAt,
  isQuorum,
  isSameUpTo,
  lastTerm,
  membersOf,
  need,
  type PendingWrite,
  type ServerState,
  type SpecState,
  type Stored,
  survivors,
  termAt,
} from './spec-state.ts'
import type {
  AppendedAction,
  HeardAction,
  Server,
  TraceAction,
  TraceEntry,
  TraceMembers,
  TraceMessage,
} from './trace-event.ts'

type Of<Action extends TraceAction['action']> = Extract<TraceAction, { action: Action }>
type MessageOf<Type extends TraceMessage['mtype']> = Extract<TraceMessage, { mtype: Type }>

/**
 * The actions of FlotillaRaft.tla with their preconditions and effects, in the same order and with
 * the same names.
 */
export function takeAction(spec: SpecState, i: ServerState, event: TraceAction): void {
  switch (event.action) {
    case 'Join':
      return join(spec, i, event)
    case 'Restart':
      return restart(spec, i, event)
    case 'UpdateTerm':
      hear(spec, i, event.message)
      need(event.message.mterm > i.currentTerm, 'the term of the message is later')
      return newTerm(i, event.message.mterm)
    case 'UpdateTermBySnapshot':
      need(event.term > i.currentTerm, 'the term of the message is later')
      need(spec.leaders.has(event.term), 'some server led this term')
      return newTerm(i, event.term)
    case 'Timeout':
      return timeout(i)
    case 'StepDown':
      need(i.state !== 'Follower', 'the server is not a follower')
      return giveUp(i)
    case 'HandleRequestVoteRequest':
      return handleVoteRequest(spec, i, event)
    case 'HandleRequestVoteResponse': {
      const { message } = event
      hear(spec, i, message)
      need(
        message.mtype === 'RequestVoteResponse' && message.mvoteGranted,
        'the message grants a vote',
      )
      need(
        message.mterm === i.currentTerm && i.state === 'Candidate',
        'the candidate waits for this vote',
      )
      i.votesGranted.add(message.msource)
      return forget(spec, event)
    }
    case 'BecomeLeader':
      return becomeLeader(spec, i)
    case 'ClientRequest':
      need(i.state === 'Leader', 'only a leader creates entries')
      for (const entry of event.entries) {
        need(
          entry[0] === i.currentTerm && entry[3] === undefined,
          'the entry is a command of the leader’s term',
        )
      }
      i.log = [...i.log, ...event.entries.map((entry) => spec.entry(entry))]
      return
    case 'ChangeConfiguration':
    case 'LeaveJoint':
      return appendConfiguration(spec, i, event)
    case 'AdvanceCommitIndex':
      return advanceCommitIndex(spec, i, event.index)
    case 'HandleAppendEntriesRequest':
      return handleAppendEntries(spec, i, event)
    case 'HandleHeartbeat': {
      const { message } = event
      need(message.mtype === 'Heartbeat', 'the message is a heartbeat')
      hearLeader(spec, i, message)
      follow(i, i.matched, message.mcommitIndex)
      return forget(spec, event)
    }
    case 'HandleAppendEntriesResponse':
      return handleAppendResponse(spec, i, event)
    case 'InstallSnapshot':
      return installSnapshot(spec, i, event)
    case 'Send':
      return send(spec, i, event)
    case 'Write': {
      const entries = event.entries.map((entry) => spec.entry(entry))
      return write(i, { ...event, entries, isWhole: false })
    }
    case 'Reset': {
      const entries = spec.committed.slice(0, event.index)
      return write(i, { term: 0, votedFor: '', first: 1, entries, isWhole: true })
    }
    case 'Persisted':
      return persisted(spec, i, event.token)
    case 'Ready':
      return ready(i)
    case 'Unexplained':
      need(false, `a ${event.input} does not cause this change`)
  }
}

// Disks and messages.

function issued({ done, writes }: ServerState): number {
  return done + writes.length
}

function write(i: ServerState, { term, votedFor, first, entries, isWhole }: PendingWrite): void {
  need(first <= diskAt(i, issued(i)).log.length + 1, 'a write leaves no gap in the log')
  i.writes = [...i.writes, { term, votedFor, first, entries, isWhole }]
}

function persisted(spec: SpecState, i: ServerState, token: number): void {
  need(token >= i.done && token <= issued(i), 'the disk reports issued writes, in order')
  i.disk = diskAt(i, token)
  i.writes = i.writes.slice(token - i.done)
  i.done = token
  for (const gated of i.gated) if (gated.token <= token) spec.messages.add(gated.key)
  i.gated = i.gated.filter((gated) => gated.token > token)
}

function ready(i: ServerState): void {
  const disk = diskAt(i, issued(i))
  need(disk.term === i.currentTerm && disk.votedFor === i.votedFor, 'term and vote were written')
  need(
    disk.log.length === i.log.length && isSameUpTo(disk.log, i.log, i.log.length),
    'the log was written',
  )
  i.pending.clear()
}

function send(spec: SpecState, i: ServerState, { message, token, isLost }: Of<'Send'>): void {
  need(
    message.msource === i.server && token <= issued(i),
    'the server sends its own message, after its own writes',
  )
  assertMaySay(spec, i, message)
  assertPromiseKept(i, message, diskAt(i, Math.max(token, i.done)))
  if (isLost) return
  const key = JSON.stringify(message)
  if (token <= i.done) spec.messages.add(key)
  else i.gated = [...i.gated, { token, key }]
}

const answerKey = (...parts: readonly (string | number)[]): string => parts.join('|')

function assertMaySay(spec: SpecState, i: ServerState, m: TraceMessage): void {
  switch (m.mtype) {
    case 'RequestVoteRequest': {
      const key = answerKey(m.mtype, m.mterm, m.mlastLogTerm, m.mlastLogIndex)
      return need(i.pending.has(key), 'the server began this campaign')
    }
    case 'RequestVoteResponse':
      if (!m.mvoteGranted) break
      return need(
        i.pending.has(answerKey(m.mtype, m.mterm, m.mdest)),
        'the server granted this vote',
      )
    case 'AppendEntriesResponse':
      if (!m.msuccess) break
      return need(
        i.pending.has(answerKey(m.mtype, m.mterm, m.mmatchIndex)),
        'the server accepted these entries',
      )
    case 'AppendEntriesRequest': {
      const log = logOfTerm(i, m.mterm)
      const last = m.mprevLogIndex + m.mentries.length
      const sent = m.mentries.map((entry) => spec.entry(entry))
      const isItsOwn = sent.every((entry, at) => log[m.mprevLogIndex + at] === entry)
      need(
        m.mprevLogTerm === termAt(log, m.mprevLogIndex),
        'the previous entry is in the log of the leader',
      )
      need(isItsOwn && last <= log.length, 'the entries are in the log of the leader')
      return need(m.mcommitIndex <= i.commitIndex, 'the commit index that is sent was reached')
    }
    case 'Heartbeat': {
      logOfTerm(i, m.mterm)
      need(m.mcommitIndex <= i.commitIndex, 'the commit index that is sent was reached')
      const peers = [...spec.servers.values()].filter(({ name }) => name === m.mdest)
      const isHeld = peers.some(({ server }) => m.mcommitIndex <= (i.matchIndex.get(server) ?? 0))
      return need(isHeld, 'the commit index that is sent is at most the match index')
    }
    case 'Answer':
      break
  }
  need(m.mterm <= i.currentTerm, 'the server reached this term')
}

function logOfTerm(i: ServerState, term: number): readonly TraceEntry[] {
  if (i.state === 'Leader' && i.currentTerm === term) return i.log
  need(i.led.term === term, 'the server led this term')
  return i.led.log
}

function assertPromiseKept(i: ServerState, m: TraceMessage, disk: Stored): void {
  need(disk.term >= m.mterm, 'the term is on disk when the message is sent')
  const voted = (name: string): boolean => disk.term > m.mterm || disk.votedFor === name
  if (m.mtype === 'RequestVoteRequest') need(voted(i.name), 'the server’s own vote is on disk')
  if (m.mtype === 'RequestVoteResponse' && m.mvoteGranted) {
    need(voted(m.mdest), 'the vote is on disk when it is sent')
  }
  if (m.mtype === 'AppendEntriesResponse' && m.msuccess && i.currentTerm === m.mterm) {
    need(
      isSameUpTo(disk.log, i.log, m.mmatchIndex),
      'the entries are on disk when they are acknowledged',
    )
  }
}

function hear(spec: SpecState, i: ServerState, message: TraceMessage): void {
  need(message.mdest === i.name, 'the message is addressed to this server')
  need(spec.messages.has(JSON.stringify(message)), 'the message was sent')
}

/** A message that may arrive again stays in the state. */
function forget(spec: SpecState, event: HeardAction): void {
  if (event.isLast) spec.messages.delete(JSON.stringify(event.message))
}

// Terms and elections.

function giveUp(i: ServerState): void {
  if (i.state === 'Leader') i.led = { term: i.currentTerm, log: i.log }
  i.state = 'Follower'
}

function newTerm(i: ServerState, term: number): void {
  giveUp(i)
  i.currentTerm = term
  i.votedFor = ''
  i.matched = i.commitIndex
}

function timeout(i: ServerState): void {
  need(i.state !== 'Leader', 'a leader does not campaign')
  i.currentTerm += 1
  i.votedFor = i.name
  i.state = 'Candidate'
  i.votesGranted = new Set()
  i.matched = i.commitIndex
  const { log, currentTerm } = i
  i.pending.add(answerKey('RequestVoteRequest', currentTerm, lastTerm(log), log.length))
}

function handleVoteRequest(spec: SpecState, i: ServerState, event: HeardAction): void {
  const m = event.message
  hear(spec, i, m)
  need(
    m.mtype === 'RequestVoteRequest' && m.mterm === i.currentTerm,
    'the message requests a vote in the current term',
  )
  const candidate = spec.of(m.msource).name
  if (i.votedFor !== candidate) {
    const last = lastTerm(i.log)
    const isUpToDate =
      m.mlastLogTerm > last || (m.mlastLogTerm === last && m.mlastLogIndex >= i.log.length)
    need(i.votedFor === '' && i.state !== 'Leader', 'the server has not voted in this term')
    need(isUpToDate, 'the candidate’s log is at least as up to date')
    i.votedFor = candidate
    i.state = 'Follower'
  }
  i.pending.add(answerKey('RequestVoteResponse', m.mterm, candidate))
  forget(spec, event)
}

function becomeLeader(spec: SpecState, i: ServerState): void {
  need(i.state === 'Candidate', 'only a candidate is elected')
  const isOwnDurable = i.disk.term === i.currentTerm && i.disk.votedFor === i.name
  const has = (server: Server): boolean =>
    i.votesGranted.has(server) || (server === i.server && isOwnDurable)
  need(isQuorum(configOf(i), has), 'a quorum voted for the candidate')
  i.state = 'Leader'
  i.matchIndex = new Map()
  const leaders = spec.leaders.get(i.currentTerm) ?? new Set()
  spec.leaders.set(i.currentTerm, leaders.add(i.server))
}

// The leader's log.

function appendConfiguration(
  spec: SpecState,
  i: ServerState,
  { action, entries }: AppendedAction,
): void {
  const entry = entries[0]
  const members = entry?.[3]
  need(entry !== undefined && members !== undefined, 'the entry is a configuration')
  need(
    i.state === 'Leader' && entry[0] === i.currentTerm,
    'a leader creates entries of its own term',
  )
  const config = configOf(i)
  const isJoint = config.outgoing.length > 0
  need(configIndex(i.log) <= i.commitIndex, 'the previous change is committed')
  if (action === 'LeaveJoint') {
    need(isJoint && isSameSet(members.voters, config.voters), 'the new voters remain')
    need(members.outgoing.length === 0, 'the old voters are removed')
  } else {
    need(!isJoint, 'no other change is in progress')
    need(
      termAt(i.log, i.commitIndex) === i.currentTerm,
      'an entry of the leader’s term is committed',
    )
    need(members.voters.length > 0, 'the new configuration has voters')
    need(isOldHalf(spec, members, config.voters), 'the old half consists of the previous voters')
  }
  i.log = [...i.log, spec.entry(entry)]
  const kept = membersOf(members)
  i.matchIndex = new Map([...i.matchIndex].filter(([server]) => kept.includes(server)))
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.every((one) => b.includes(one)) && b.every((one) => a.includes(one))
}

/**
 * If a voter's name belongs to another disk, that disk is only in the old half; the new half
 * consists exactly of the other voters.
 */
function isOldHalf(spec: SpecState, target: TraceMembers, voters: readonly Server[]): boolean {
  const { outgoing } = target
  if (isSameSet(outgoing, voters)) return true
  const names = (ids: readonly Server[]): string[] => ids.map((id) => spec.of(id).name)
  const others = outgoing.filter((server) => voters.includes(server))
  return (
    isSameSet(names(outgoing), names(voters)) &&
    others.length === outgoing.length - 1 &&
    isSameSet(target.voters, others)
  )
}

function advanceCommitIndex(spec: SpecState, i: ServerState, index: number): void {
  need(i.state === 'Leader', 'only a leader commits by counting')
  need(index > i.commitIndex && index <= i.log.length, 'the commit index advances within the log')
  need(termAt(i.log, index) === i.currentTerm, 'only an entry of the leader’s term is counted')
  const config = configOf(i)
  const holds = (server: Server): boolean =>
    server === i.server
      ? isSameUpTo(i.disk.log, i.log, index)
      : (i.matchIndex.get(server) ?? 0) >= index
  need(isQuorum(config, holds), 'a quorum has the entry on disk')
  i.commitIndex = index
  if (index > spec.committed.length) {
    const count = index - spec.committed.length
    spec.committedIn = [...spec.committedIn, ...Array<number>(count).fill(i.currentTerm)]
    spec.committed = i.log.slice(0, index)
  }
  spec.lastCommit = { index, config }
}

// Replication.

function hearLeader(spec: SpecState, i: ServerState, message: TraceMessage): void {
  hear(spec, i, message)
  need(message.mterm === i.currentTerm, 'the message is of the current term')
  need(i.state !== 'Leader', 'a term has one leader')
  i.state = 'Follower'
}

function follow(i: ServerState, matched: number, leaderCommit: number): void {
  i.matched = matched
  i.commitIndex = Math.max(i.commitIndex, Math.min(leaderCommit, matched))
}

function handleAppendEntries(spec: SpecState, i: ServerState, event: HeardAction): void {
  const { message } = event
  need(message.mtype === 'AppendEntriesRequest', 'the message is an append request')
  const m: MessageOf<'AppendEntriesRequest'> = message
  hearLeader(spec, i, m)
  forget(spec, event)
  const previous = m.mprevLogIndex
  if (previous > i.log.length || termAt(i.log, previous) !== m.mprevLogTerm) return
  const entries = m.mentries.map((entry) => spec.entry(entry))
  const other = entries.findIndex(([term], at) => termAt(i.log, previous + at + 1) !== term)
  if (other >= 0) {
    need(previous + other >= i.commitIndex, 'committed entries are not replaced')
    i.log = [...i.log.slice(0, previous + other), ...entries.slice(other)]
  }
  const reached = Math.max(previous + entries.length, i.commitIndex)
  follow(i, Math.max(i.matched, reached), m.mcommitIndex)
  i.pending.add(answerKey('AppendEntriesResponse', m.mterm, reached))
}

function handleAppendResponse(spec: SpecState, i: ServerState, event: HeardAction): void {
  const m = event.message
  hear(spec, i, m)
  need(m.mtype === 'AppendEntriesResponse' && m.msuccess, 'the message acknowledges entries')
  need(
    m.mterm === i.currentTerm && i.state === 'Leader',
    'the acknowledgment is for the current leadership',
  )
  need(m.mmatchIndex <= i.log.length, 'only entries in the leader’s log are acknowledged')
  const before = i.matchIndex.get(m.msource) ?? 0
  i.matchIndex.set(m.msource, Math.max(before, m.mmatchIndex))
  forget(spec, event)
}

function installSnapshot(
  spec: SpecState,
  i: ServerState,
  { index, term, snapshotTerm }: Of<'InstallSnapshot'>,
): void {
  need(termAt(spec.committed, index) === term, 'the snapshot contains the committed entries')
  need(i.state !== 'Leader' || snapshotTerm < i.currentTerm, 'a term has one leader')
  if (snapshotTerm === i.currentTerm) i.state = 'Follower'
  if (index > i.commitIndex) {
    if (termAt(i.log, index) !== term) i.log = spec.committed.slice(0, index)
    i.matched = Math.max(i.matched, index)
    i.commitIndex = index
  }
  i.pending.add(answerKey('AppendEntriesResponse', i.currentTerm, i.commitIndex))
}

// Crashes.

function restart(spec: SpecState, i: ServerState, event: Of<'Restart'>): void {
  const isFound = ({ term, votedFor, log }: Stored): boolean =>
    term === event.term &&
    votedFor === event.votedFor &&
    log.length === event.lastIndex &&
    lastTerm(log) === event.lastTerm
  const found = [...survivors(i)].find(isFound)
  need(found !== undefined, 'the disk has a content that a crash can leave')
  recover(spec, i, found, event)
}

function join(spec: SpecState, i: ServerState, event: Of<'Join'>): void {
  need(!i.isJoined, 'the disk did not exist before')
  i.isJoined = true
  i.told = event.told
  const { term, votedFor, base, entries } = event
  const kept = entries.map((entry) => spec.entry(entry))
  recover(spec, i, { term, votedFor, log: [...spec.committed.slice(0, base), ...kept] }, event)
}

function recover(
  spec: SpecState,
  i: ServerState,
  found: Stored,
  { applied, commit }: { readonly applied: number; readonly commit: number },
): void {
  need(applied <= spec.committed.length, 'applied entries are committed')
  const isBehind = termAt(found.log, applied) !== termAt(spec.committed, applied)
  i.log = isBehind ? spec.committed.slice(0, applied) : found.log
  need(
    commit >= applied && commit <= i.log.length,
    'the commit index is between applied index and end of the log',
  )
  i.currentTerm = Math.max(found.term, lastTerm(i.log))
  i.votedFor = i.currentTerm === found.term ? found.votedFor : ''
  i.state = 'Follower'
  i.commitIndex = commit
  i.matched = commit
  i.disk = found
  i.led = { term: 0, log: [] }
  i.votesGranted = new Set()
  i.matchIndex = new Map()
  i.writes = []
  i.done = 0
  i.pending = new Set()
  i.gated = []
}
