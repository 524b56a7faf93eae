import { hexOf } from '../../lib/text/hex-digits.ts'
import type { Hello } from '../../../proto/gen/mesh_pb.ts'
import type { DiskPromise, PeerDiskRecord } from '../../ports/membership-cache.ts'
import type { Index, NodeId, Term } from '../../raft/types.ts'
import { integer } from '../message-codec.ts'

type Mark = { -readonly [name in keyof DiskPromise]: DiskPromise[name] }

/** One start of a process on a store. */
interface ProcessStart {
  readonly boot: bigint
  readonly startedAtMs: bigint
}

interface Remembered {
  readonly store: string
  start: ProcessStart
  /** Positions heard from this process start, on the streams that the peer dialled. */
  readonly heard: Mark
  /** Positions heard from this process start, in answer to our dialling. */
  readonly answered: Mark
  /** Positions heard from earlier process starts on this store. */
  readonly past: Mark
}

/**
 * rolled-back: the store is older than it was; `superseded`: a later process has started on a copy
 * of it.
 */
export type HistoryFault = 'rolled-back' | 'superseded'

/**
 * Remembers what peers have said is on their disks, so that a disk put back to an old copy (a
 * restored backup, a virtual machine's snapshot) is recognised: it would forget votes and
 * acknowledgements that others count on. A store is behind when
 *
 * - its term is lower than one that it has announced: a term is announced only once it is durable,
 *   and never falls;
 * - it is still in that term and its log is shorter than what it held in it. An entry of the term
 *   itself, or one that was acknowledged to its leader, equals the leader's log up to there, which
 *   that leader never shortens. The bare place of the last entry would not do, not even compared by
 *   term first: a new leader's repair comes in pieces, and its first piece replaces a long tail by
 *   entries of an earlier term than the tail's;
 * - its log ends before what it has applied: that was committed and durable, and no leader replaces
 *   it;
 * - it counts no more starts than before, though it started later: a start is counted durably
 *   before anything is said.
 *
 * A store whose log was damaged says what it owes (raft/owed.ts): it is held to that as if it had
 * it, for until it has, it gives no vote that one with it would not give.
 *
 * What is compared must have been said before: each direction of streams is ordered, but between
 * the two nothing is. So within one start a caller's Hello is held against what came on the streams
 * that it dialled, and one that answers us only against earlier starts, which ended before it was
 * made. That holds as well for what an earlier process here was told: a peer dials anew only after
 * its streams to that one have ended.
 */
export class RollbackDetector {
  readonly #generation: number
  readonly #peers = new Map<NodeId, Remembered>()
  #isChanged = false

  /** @param kept what an earlier process here was told. */
  constructor(generation: number, kept: readonly PeerDiskRecord[] = []) {
    this.#generation = generation
    for (const { id, boot, startedAtMs, storeId, ...mark } of kept) {
      if (mark.generation !== generation) continue
      const [heard, answered, past] = [{ ...mark.heard }, { ...mark.answered }, { ...mark.past }]
      const start = { boot, startedAtMs }
      this.#peers.set(id, { store: hexOf(storeId), start, heard, answered, past })
    }
  }

  /** For the next process. */
  marks(): PeerDiskRecord[] {
    return [...this.#peers].map(([id, { store, start, heard, answered, past }]) => ({
      id,
      generation: this.#generation,
      storeId: Uint8Array.from(Buffer.from(store, 'hex')),
      ...start,
      heard: { ...heard },
      answered: { ...answered },
      past: { ...past },
    }))
  }

  /** @returns whether the marks are others than when this was last asked. */
  takeChanged(): boolean {
    const isChanged = this.#isChanged
    this.#isChanged = false
    return isChanged
  }

  /**
   * @param isCaller whether the peer dialled the stream that begins with this Hello.
   * @returns null: remembered.
   */
  judge(id: NodeId, hello: Hello, isCaller: boolean): HistoryFault | null {
    const store = hexOf(hello.storeId)
    const start = { boot: hello.boot, startedAtMs: hello.startedAtMs }
    const known = this.#peers.get(id)
    this.#isChanged = true
    if (known?.store !== store) {
      const [heard, answered, past] = [noMark(), noMark(), noMark()]
      const fresh = { store, start, heard, answered, past }
      note(isCaller ? heard : answered, hello)
      this.#peers.set(id, fresh)
      return null
    }
    const fault = faultOf(known, start, hello, isCaller)
    if (fault !== null) return fault
    if (!isSameStart(known.start, start)) begin(known, start)
    note(isCaller ? known.heard : known.answered, hello)
    return null
  }

  /** A message that leaves only once its term is durable. */
  noteTerm(id: NodeId, term: Term): void {
    const mark = this.#peers.get(id)?.heard
    if (mark === undefined || term <= mark.term) return
    mark.term = term
    mark.index = 0
    this.#isChanged = true
  }

  /** An acknowledgement: its store holds the log of the leader of `term` through `index`. */
  noteMatch(id: NodeId, term: Term, index: Index): void {
    this.noteTerm(id, term)
    const mark = this.#peers.get(id)?.heard
    if (mark?.term !== term || index <= mark.index) return
    mark.index = index
    this.#isChanged = true
  }

  /**
   * @param startedAtMs of the process that said so: it may be heard of late, when another has taken
   * its place.
   */
  noteApplied(id: NodeId, startedAtMs: bigint, index: Index): void {
    const known = this.#peers.get(id)
    if (known === undefined || index <= known.heard.applied) return
    if (known.start.startedAtMs !== startedAtMs) return
    known.heard.applied = index
    this.#isChanged = true
  }

  /** Forgets everyone else. */
  retain(isMember: (id: NodeId) => boolean): void {
    for (const id of Array.from(this.#peers.keys())) {
      if (!isMember(id)) this.#isChanged = this.#peers.delete(id) || this.#isChanged
    }
  }
}

function faultOf(
  known: Remembered,
  start: ProcessStart,
  hello: Hello,
  isCaller: boolean,
): HistoryFault | null {
  const isSame = isSameStart(known.start, start)
  if (!isSame && start.boot <= known.start.boot) {
    return start.startedAtMs > known.start.startedAtMs ? 'rolled-back' : 'superseded'
  }
  const marks = isSame
    ? [known.past, ...(isCaller ? [known.heard] : [])]
    : [known.past, known.heard, known.answered]
  return marks.some((mark) => isBehind(hello, mark)) ? 'rolled-back' : null
}

function isBehind(hello: Hello, mark: Mark): boolean {
  const term = integer(hello.currentTerm)
  const index = Math.max(integer(hello.last?.index ?? 0n), integer(hello.owed?.index ?? 0n))
  return term < mark.term || (term === mark.term && index < mark.index) || index < mark.applied
}

function note(mark: Mark, hello: Hello): void {
  const term = integer(hello.currentTerm)
  if (term < mark.term) return
  const isOfTerm = hello.last?.term === hello.currentTerm
  const index = isOfTerm ? integer(hello.last?.index ?? 0n) : 0
  mark.index = term > mark.term ? index : Math.max(mark.index, index)
  mark.term = term
}

function begin(known: Remembered, start: ProcessStart): void {
  known.start = start
  for (const mark of [known.heard, known.answered]) {
    if (mark.term > known.past.term) known.past.index = 0
    if (mark.term >= known.past.term) known.past.index = Math.max(known.past.index, mark.index)
    known.past.term = Math.max(known.past.term, mark.term)
    known.past.applied = Math.max(known.past.applied, mark.applied)
    Object.assign(mark, noMark())
  }
}

function isSameStart(a: ProcessStart, b: ProcessStart): boolean {
  return a.boot === b.boot && a.startedAtMs === b.startedAtMs
}

function noMark(): Mark {
  return { term: 0, index: 0, applied: 0 }
}
