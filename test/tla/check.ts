import { takeAction } from './spec-actions.ts'
import {
  configOf,
  isQuorum,
  isSameUpTo,
  lastTerm,
  need,
  NotEnabled,
  type ServerState,
  SpecState,
  termAt,
} from './spec-state.ts'
import type { Trace, TraceAfter, TraceEvent, TraceMembers } from './trace-event.ts'

export interface Finding {
  /** Number of the event, counted from 1. */
  readonly number: number
  readonly event: TraceEvent
  readonly reason: string
}

/**
 * The TypeScript equivalent of FlotillaTrace.tla. It applies the same actions to the run event by
 * event, and checks the same guarantees after each. It needs no Java, and checks a run in the time
 * that TLC needs to start. It is trusted because both give the same result on the same runs.
 * @returns the first event that it does not accept or that breaks a guarantee; null if no event
 * does.
 */
export function checkTrace(trace: Trace): Finding | null {
  const spec = new SpecState(trace)
  for (const [at, event] of trace.events.entries()) {
    try {
      const server = spec.of(event.server)
      takeAction(spec, server, event)
      if (event.after !== undefined) assertReported(server, event.after)
      assertGuarantees(spec, server, event)
    } catch (error) {
      if (!(error instanceof NotEnabled)) throw error
      return { number: at + 1, event, reason: error.message }
    }
  }
  return null
}

function assertReported(i: ServerState, after: TraceAfter): void {
  const same = (name: string, here: unknown, reported: unknown): void =>
    need(here === reported, `${name} is ${String(here)}, reported as ${String(reported)}`)
  same('term', i.currentTerm, after.term)
  same('vote', i.votedFor, after.votedFor)
  same('state', i.state, after.state)
  same('last index', i.log.length, after.lastIndex)
  same('last term', lastTerm(i.log), after.lastTerm)
  same('commit', i.commitIndex, after.commit)
  if (after.config !== undefined) {
    same('configuration', textOf(configOf(i)), textOf(after.config))
  }
  for (const [peer, matchIndex] of after.match ?? []) {
    same(`match of ${peer}`, i.matchIndex.get(peer) ?? 0, matchIndex)
  }
}

function textOf({ voters, outgoing, learners }: TraceMembers): string {
  return [voters, outgoing, learners].map((half) => half.toSorted().join(',')).join(' | ')
}

const logActions: ReadonlySet<TraceEvent['action']> = new Set([
  ...(['Join', 'Restart', 'ClientRequest', 'ChangeConfiguration', 'LeaveJoint'] as const),
  ...(['HandleAppendEntriesRequest', 'InstallSnapshot'] as const),
])

function assertGuarantees(spec: SpecState, i: ServerState, { action }: TraceEvent): void {
  if (action === 'BecomeLeader') {
    need(spec.leaders.get(i.currentTerm)?.size === 1, 'ElectionSafety: a term has one leader')
    assertComplete(spec, i)
  }
  if (action === 'AdvanceCommitIndex') {
    for (const other of spec.servers.values()) if (other !== i) assertComplete(spec, other)
  }
  if (logActions.has(action)) assertLogMatching(spec, i)
  if (logActions.has(action) || action === 'AdvanceCommitIndex' || action === 'HandleHeartbeat') {
    const isPart = isSameUpTo(i.log, spec.committed, i.commitIndex)
    need(isPart, 'StateMachineSafety: its committed entries are a prefix of the history')
    assertUpToDateVote(spec, i)
  }
  const isDisk = action === 'Persisted' || action === 'Restart' || action === 'AdvanceCommitIndex'
  if (isDisk) assertCommittedIsDurable(spec)
}

function assertLogMatching(spec: SpecState, i: ServerState): void {
  for (const j of spec.servers.values()) {
    let alike = Math.min(i.log.length, j.log.length)
    while (alike > 0 && termAt(i.log, alike) !== termAt(j.log, alike)) alike -= 1
    need(isSameUpTo(i.log, j.log, alike), `LogMatching: the logs of ${i.server} and ${j.server}`)
  }
}

function assertComplete(spec: SpecState, i: ServerState): void {
  if (i.state !== 'Leader') return
  for (const [at, term] of spec.committedIn.entries()) {
    const isThere = term >= i.currentTerm || i.log[at] === spec.committed[at]
    need(isThere, `LeaderCompleteness: ${i.server} leads without committed entry ${at + 1}`)
  }
}

function assertUpToDateVote(spec: SpecState, i: ServerState): void {
  const isAsUpToDate = (a: ServerState, b: ServerState): boolean => {
    const [last, other] = [lastTerm(a.log), lastTerm(b.log)]
    return last > other || (last === other && a.log.length >= b.log.length)
  }
  const assertPair = (a: ServerState, b: ServerState): void => {
    if (!isAsUpToDate(a, b)) return
    const hasAll = isSameUpTo(a.log, b.log, b.commitIndex)
    need(hasAll, `UpToDateVote: ${a.server} would win the vote of ${b.server}`)
  }
  for (const j of spec.servers.values()) {
    assertPair(i, j)
    assertPair(j, i)
  }
}

function assertCommittedIsDurable({ servers, lastCommit, committed }: SpecState): void {
  const { index, config } = lastCommit
  if (index === 0) return
  const holds = (server: string): boolean =>
    isSameUpTo(servers.get(server)?.disk.log ?? [], committed, index)
  need(
    isQuorum(config, holds),
    'CommittedIsDurable: the entries of the last commit are on the disks of a quorum',
  )
}
