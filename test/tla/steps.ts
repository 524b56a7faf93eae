import type { FullCoreStatus } from '../../src/raft/core.ts'
import type { CoreInput } from '../../src/raft/input.ts'
import type { Message, Role } from '../../src/raft/types.ts'
import type {
  HeardAction,
  TraceAction,
  TraceAfter,
  TraceEntry,
  TraceMessage,
} from './trace-event.ts'

/** One input, and what a core reported before and after it. */
export interface Step {
  readonly input: CoreInput
  readonly before: FullCoreStatus
  readonly after: FullCoreStatus
  /**
   * The message that the Raft core received in this step; null if the step had none, or the
   * specification does not contain it.
   */
  readonly message: TraceMessage | null
  readonly entriesAfter: (index: number) => readonly TraceEntry[]
}

/** A server that requests pre-votes has not changed its state yet. */
export function stateOf(role: Role): TraceAfter['state'] {
  if (role === 'leader') return 'Leader'
  return role === 'candidate' ? 'Candidate' : 'Follower'
}

/**
 * The assumed actions of this step, in order: the input, its consequences, and the last actions of
 * a leader. This is only an assumption from outside: if it is wrong, the specification rejects the
 * event.
 */
export function explainStep(step: Step): readonly TraceAction[] {
  const handled = handledOf(step)
  const actions = [...handled, ...leaderActionsOf(step)]
  const isHeard = handled.some(({ action }) => action !== 'HandleRequestVoteResponse')
  return isSteppedDown(step) && !(isHeard && step.before.role === 'candidate')
    ? [...actions, { action: 'StepDown' }]
    : actions
}

function handledOf(step: Step): readonly TraceAction[] {
  const { input, before, after } = step
  if (input.type === 'persisted') return [{ action: 'Persisted', token: input.token }]
  const isCampaign =
    after.term === before.term + 1 && after.role === 'candidate' && after.votedFor === after.id
  if (isCampaign) return [{ action: 'Timeout' }]
  if (input.type !== 'message') return []
  const actions: TraceAction[] = []
  if (after.term > before.term && after.term === input.message.term) {
    if (input.message.type === 'snapshot') {
      actions.push({ action: 'UpdateTermBySnapshot', term: after.term })
    } else if (step.message !== null) {
      actions.push({ action: 'UpdateTerm', message: step.message })
    }
  }
  const action = handlerOf(step, input.message)
  return action === null ? actions : [...actions, action]
}

/** @returns null for a message that changed nothing, or only the term. */
function handlerOf({ before, after, message }: Step, raw: Message): TraceAction | null {
  if (raw.type === 'snapshot') {
    const { position, term } = raw
    if (position.index <= before.commit && before.role === 'leader') return null
    return { action: 'InstallSnapshot', ...position, snapshotTerm: term }
  }
  if (message === null || message.mterm !== after.term) return null
  switch (message.mtype) {
    case 'RequestVoteRequest':
      return after.votedFor === raw.from ? take('HandleRequestVoteRequest', message) : null
    case 'RequestVoteResponse':
      return message.mvoteGranted && before.role === 'candidate' && before.term === after.term
        ? take('HandleRequestVoteResponse', message)
        : null
    case 'AppendEntriesRequest':
      return take('HandleAppendEntriesRequest', message)
    case 'AppendEntriesResponse':
      return isNewMatch(before, after, raw) ? take('HandleAppendEntriesResponse', message) : null
    case 'Heartbeat': {
      const isNews = after.commit > before.commit || before.role === 'candidate'
      return isNews ? take('HandleHeartbeat', message) : null
    }
    case 'Answer':
      return null
  }
}

function take(action: HeardAction['action'], message: TraceMessage): TraceAction {
  return { action, message, isLast: false }
}

function isNewMatch(before: FullCoreStatus, after: FullCoreStatus, raw: Message): boolean {
  if (before.role !== 'leader' || before.term !== after.term) return false
  // The leader stepped down because of an entry that this answer committed, and dropped its records
  // of peers.
  if (after.role !== 'leader') return after.commit > before.commit
  const matchIn = ({ peers }: FullCoreStatus): number =>
    peers.find(({ id }) => id === raw.from)?.matchIndex ?? 0
  return matchIn(after) > matchIn(before)
}

/**
 * First the election, then the commit, then the append, because leaving a joint change follows from
 * its commit.
 */
function leaderActionsOf({ input, before, after, entriesAfter }: Step): readonly TraceAction[] {
  const wasLeader = before.role === 'leader'
  const isElected = after.role === 'leader' && (!wasLeader || before.term !== after.term)
  if (!wasLeader && !isElected) return []
  const actions: TraceAction[] = []
  let entries = entriesAfter(before.last.index)
  if (isElected) {
    actions.push(
      { action: 'BecomeLeader' },
      { action: 'ClientRequest', entries: Array.from(entries.slice(0, 1)) },
    )
    entries = entries.slice(1)
  }
  const isCounted = input.type === 'persisted' || isAnswer(input)
  if (isCounted && after.commit > before.commit) {
    actions.push({ action: 'AdvanceCommitIndex', index: after.commit })
  }
  const commands = entries.filter((entry) => entry[3] === undefined)
  const configurations = entries.filter((entry) => entry[3] !== undefined)
  if (commands.length > 0) actions.push({ action: 'ClientRequest', entries: commands })
  for (const entry of configurations) {
    const isJoint = (entry[3]?.outgoing.length ?? 0) > 0
    actions.push({ action: isJoint ? 'ChangeConfiguration' : 'LeaveJoint', entries: [entry] })
  }
  return actions
}

function isAnswer(input: CoreInput): boolean {
  return input.type === 'message' && input.message.type === 'appendResponse'
}

function isSteppedDown({ before, after }: Step): boolean {
  const isSameTerm = before.term === after.term
  return isSameTerm && stateOf(before.role) !== 'Follower' && stateOf(after.role) === 'Follower'
}
