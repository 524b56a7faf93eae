import { toHex } from '../../lib/text/to-hex.ts'
import type { Hello } from '../../../proto/gen/mesh_pb.ts'
import type { DurablePosition, PeerDiskRecord } from '../../ports/membership-cache.ts'
import type { Index, NodeId, Term } from '../../raft/types.ts'
import { toSafeInteger } from '../message-codec.ts'

type Mark = { -readonly [name in keyof DurablePosition]: DurablePosition[name] }

/** One start of a process with a store. */
interface ProcessStart {
  readonly boot: bigint
  readonly startedAtMs: bigint
}

interface Remembered {
  readonly store: string
  start: ProcessStart
  /**
   * Positions that the process has reported since this start, on the streams that the peer dialed.
   */
  readonly heard: Mark
  /**
   * Positions that the process has reported since this start, in responses to this member's dials.
   */
  readonly answered: Mark
  /** Positions that earlier processes with this store reported. */
  readonly past: Mark
}

/**
 * `rolled-back`: the store is in an older state than one that the peer has reported. `superseded`:
 * a later process has started on a copy of the store.
 */
type HistoryFault = 'rolled-back' | 'superseded'

/**
 * Records what peers have reported about their disks, to detect a disk that was reset to an old
 * copy (a restored backup, a VM snapshot). Such a disk has lost votes and acknowledgments that
 * other members rely on. A store is rolled back if one of these holds:
 * - Its term is lower than one that it has announced. A term is announced only once it is durable,
 *   and never decreases.
 * - It is still in the same term, and its log is shorter than it was in that term. Entries of the
 *   term itself, and entries acknowledged to the leader of the term, match that leader's log, and
 *   the leader never truncates them. The position of the last entry alone proves nothing, even if
 *   terms are compared first: a new leader repairs a log in several messages, and the first one may
 *   replace a long tail by entries of an earlier term.
 * - Its log ends before its applied index. Applied entries were committed and durable, and no
 *   leader replaces them.
 * - Its start count is no higher than before, but its process started later. A process counts its
 *   start durably before it sends anything.
 *
 * A store with a damaged log reports its missing tail (raft/missing-tail.ts), and is treated as if
 * it had that tail: until it has the tail, it grants no vote that a store with the tail would
 * refuse.
 *
 * A comparison needs an order. Frames of one direction of streams are ordered; frames of different
 * directions are not. So within one process start, the Hello of a caller is compared with frames on
 * the streams that the caller dialed. A Hello that answers this member is compared only with
 * earlier process starts, which ended before the Hello was made. This also holds for positions
 * reported to an earlier process of this member, because a peer dials the new process only after
 * its streams to the previous one have ended.
 */
export class RollbackDetector {
  readonly #generation: number
  readonly #peers = new Map<NodeId, Remembered>()
  #isChanged = false

  /** @param kept positions that an earlier process of this member stored. */
  constructor(generation: number, kept: readonly PeerDiskRecord[] = []) {
    this.#generation = generation
    for (const { id, boot, startedAtMs, storeId, ...mark } of kept) {
      if (mark.generation !== generation) continue
      const [heard, answered, past] = [{ ...mark.heard }, { ...mark.answered }, { ...mark.past }]
      const start = { boot, startedAtMs }
      this.#peers.set(id, { store: toHex(storeId), start, heard, answered, past })
    }
  }

  /** The recorded positions, to store for the next process. */
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

  /** @returns whether the recorded positions have changed since the last call. */
  takeChanged(): boolean {
    const isChanged = this.#isChanged
    this.#isChanged = false
    return isChanged
  }

  /**
   * Compares a Hello with the earlier reports of its sender.
   * @param isCaller whether the peer dialed the stream of this Hello.
   * @returns null when the history is consistent; the Hello is then recorded.
   */
  judge(id: NodeId, hello: Hello, isCaller: boolean): HistoryFault | null {
    const store = toHex(hello.storeId)
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

  /**
   * Records a term that the peer's disk has. Called for messages that are sent only after their
   * term is durable.
   */
  noteTerm(id: NodeId, term: Term): void {
    const mark = this.#peers.get(id)?.heard
    if (mark === undefined || term <= mark.term) return
    mark.term = term
    mark.index = 0
    this.#isChanged = true
  }

  /**
   * Records an acknowledgment: the peer's store has the log of the leader of `term` through
   * `index`.
   */
  noteMatch(id: NodeId, term: Term, index: Index): void {
    this.noteTerm(id, term)
    const mark = this.#peers.get(id)?.heard
    if (mark?.term !== term || index <= mark.index) return
    mark.index = index
    this.#isChanged = true
  }

  /**
   * Records an applied index that a peer reported.
   * @param startedAtMs start of the process that reported. Another process may have replaced it
   * before the report arrives.
   */
  noteApplied(id: NodeId, startedAtMs: bigint, index: Index): void {
    const known = this.#peers.get(id)
    if (known === undefined || index <= known.heard.applied) return
    if (known.start.startedAtMs !== startedAtMs) return
    known.heard.applied = index
    this.#isChanged = true
  }

  /** Drops the recorded positions of all nodes that are not members. */
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
  const term = toSafeInteger(hello.currentTerm)
  const index = Math.max(
    toSafeInteger(hello.last?.index ?? 0n),
    toSafeInteger(hello.owed?.index ?? 0n),
  )
  return term < mark.term || (term === mark.term && index < mark.index) || index < mark.applied
}

function note(mark: Mark, hello: Hello): void {
  const term = toSafeInteger(hello.currentTerm)
  if (term < mark.term) return
  const isOfTerm = hello.last?.term === hello.currentTerm
  const index = isOfTerm ? toSafeInteger(hello.last?.index ?? 0n) : 0
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
