import type { Server, Trace, TraceEntry, TraceMembers } from './trace-event.ts'

/**
 * The variables of FlotillaRaft.tla, with the same names unless they are only fields of a record.
 */

export interface Stored {
  readonly term: number
  readonly votedFor: string
  readonly log: readonly TraceEntry[]
}

/**
 * term 0: term and vote stay unchanged. All entries from `first` on are replaced. `isWhole`: after
 * a crash, either all of the write is on disk or none of it.
 */
export interface PendingWrite {
  readonly term: number
  readonly votedFor: string
  readonly first: number
  readonly entries: readonly TraceEntry[]
  readonly isWhole: boolean
}

export interface ServerState {
  readonly server: Server
  readonly name: string
  isJoined: boolean
  currentTerm: number
  votedFor: string
  state: 'Follower' | 'Candidate' | 'Leader'
  log: readonly TraceEntry[]
  commitIndex: number
  matched: number
  told: TraceMembers
  votesGranted: Set<Server>
  matchIndex: Map<Server, number>
  led: { readonly term: number; readonly log: readonly TraceEntry[] }
  disk: Stored
  writes: readonly PendingWrite[]
  done: number
  pending: Set<string>
  gated: readonly { readonly token: number; readonly key: string }[]
}

export const NOBODY: TraceMembers = { voters: [], outgoing: [], learners: [] }

export class SpecState {
  readonly servers = new Map<Server, ServerState>()
  readonly messages = new Set<string>()
  /** Term → the servers that led it. */
  readonly leaders = new Map<number, Set<Server>>()
  committed: readonly TraceEntry[]
  committedIn: number[]
  lastCommit: { readonly index: number; readonly config: TraceMembers } = {
    index: 0,
    config: NOBODY,
  }
  readonly #entries = new Map<string, TraceEntry>()

  constructor(trace: Trace) {
    this.committed = trace.formed.map((entry) => this.entry(entry))
    this.committedIn = this.committed.map(([term]) => term)
    for (const [server, name] of trace.servers) this.servers.set(server, blank(server, name))
  }

  /** Equal entries are one object, so that logs can be compared by identity. */
  entry(entry: TraceEntry): TraceEntry {
    const key = JSON.stringify(entry)
    const known = this.#entries.get(key) ?? entry
    this.#entries.set(key, known)
    return known
  }

  of(server: Server): ServerState {
    const state = this.servers.get(server)
    need(state !== undefined, `${server} is a server of the run`)
    return state
  }
}

function blank(server: Server, name: string): ServerState {
  return {
    server,
    name,
    isJoined: false,
    currentTerm: 0,
    votedFor: '',
    state: 'Follower',
    log: [],
    commitIndex: 0,
    matched: 0,
    told: NOBODY,
    votesGranted: new Set(),
    matchIndex: new Map(),
    led: { term: 0, log: [] },
    disk: { term: 0, votedFor: '', log: [] },
    writes: [],
    done: 0,
    pending: new Set(),
    gated: [],
  }
}

/** The precondition of an action is not fulfilled. */
export class NotEnabled extends Error {}

export function need(condition: boolean, what: string): asserts condition {
  if (!condition) throw new NotEnabled(what)
}

export function termAt(log: readonly TraceEntry[], index: number): number {
  return log[index - 1]?.[0] ?? 0
}

export function lastTerm(log: readonly TraceEntry[]): number {
  return termAt(log, log.length)
}

/** Whether both logs are equal up to and including this index. */
export function isSameUpTo(
  a: readonly TraceEntry[],
  b: readonly TraceEntry[],
  index: number,
): boolean {
  if (a === b) return a.length >= index
  if (a.length < index || b.length < index) return false
  for (let at = 0; at < index; at += 1) if (a[at] !== b[at]) return false
  return true
}

export function configIndex(log: readonly TraceEntry[]): number {
  return log.findLastIndex((entry) => entry[3] !== undefined) + 1
}

export function configOf({ log, told }: Pick<ServerState, 'log' | 'told'>): TraceMembers {
  return log[configIndex(log) - 1]?.[3] ?? told
}

export function membersOf({ voters, outgoing, learners }: TraceMembers): readonly Server[] {
  return [...new Set([...voters, ...outgoing, ...learners])]
}

export function isQuorum(config: TraceMembers, has: (server: Server) => boolean): boolean {
  const isMajority = (half: readonly Server[]): boolean =>
    half.filter((server) => has(server)).length * 2 > half.length
  return isMajority(config.voters) && (config.outgoing.length === 0 || isMajority(config.outgoing))
}

export function wrote(disk: Stored, write: PendingWrite, count: number): Stored {
  const { term, votedFor, first, entries } = write
  const hard = term === 0 ? disk : { term, votedFor }
  const log = count === 0 ? disk.log : [...disk.log.slice(0, first - 1), ...entries.slice(0, count)]
  return { term: hard.term, votedFor: hard.votedFor, log }
}

/** The disk after the first `token` writes since the last start have reached it. */
export function diskAt({ disk, writes, done }: ServerState, token: number): Stored {
  let at = disk
  for (const write of writes.slice(0, Math.max(0, token - done))) {
    at = wrote(at, write, write.entries.length)
  }
  return at
}

/** The disk states that a crash may leave. */
export function* survivors(server: ServerState): Generator<Stored> {
  let at = server.disk
  yield at
  for (const write of server.writes) {
    const { entries, isWhole } = write
    for (let count = 0; !isWhole && count < entries.length; count += 1)
      yield wrote(at, write, count)
    at = wrote(at, write, entries.length)
    yield at
  }
}
