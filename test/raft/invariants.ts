import { assert } from '../../src/lib/assert.ts'
import type { RaftCore, FullCoreStatus } from '../../src/raft/core.ts'
import type { Configuration, Entry, Index, Message, NodeId, Term } from '../../src/raft/types.ts'
import { isQuorum } from './slow-quorum.ts'
import type { Platter } from './simulated-disk.ts'

/** One run of one node between two crashes: the disk survives a crash, the Raft core does not. */
export interface Watched {
  readonly id: NodeId
  readonly store: number
  readonly platter: Platter
  readonly core: RaftCore
}

/** Entries on a disk. */
export interface Held {
  holds(index: Index, term: Term): boolean
}

interface Seen {
  readonly term: Term
  readonly commit: Index
  readonly applied: Index
  readonly role: string
  readonly lastIndex: Index
  readonly lastTerm: Term
  readonly configuration: Configuration
}

const decoder = new TextDecoder()

export function fingerprint(entry: Entry): string {
  const data = entry.type === 'configuration' ? String(entry.data) : decoder.decode(entry.data)
  return `${entry.type}|${entry.timeMs}|${data}`
}

/**
 * After every turn, checks from outside the guarantees of figure 3 of the Raft paper, and those
 * that this core adds: I1 one leader per term, I2 a leader only appends, I3 log matching, I4 leader
 * completeness, I5 one history for all nodes, I6 committed means durable on a quorum, I7 the entry
 * that commits is of the leader's own term, I8 nothing regresses, even across crashes, I9 no gap
 * between state and log, I10 nothing is promised before it is durable, I11 the configuration in
 * force is the last in the log, I12 one change at a time, I13 only voters lead, I16 every start
 * succeeds, I17 bounds.
 */
export class Invariants {
  /** index → term of the entry committed there. */
  readonly history: Term[] = []
  readonly #leaders = new Map<Term, NodeId>()
  readonly #entries = new Map<string, string>()
  readonly #votes = new Map<string, NodeId>()
  readonly #appliedAs: string[] = []
  readonly #seen = new Map<RaftCore, Seen>()
  readonly #platterTerms = new Map<Platter, Term>()
  readonly #platters: () => ReadonlyMap<NodeId, Held>

  constructor(platters: () => ReadonlyMap<NodeId, Held>) {
    this.#platters = platters
  }

  get committedIndex(): Index {
    return this.history.length - 1
  }

  seedHistory(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.history[entry.index] = entry.term
      this.#appliedAs[entry.index] = `${entry.term}|${fingerprint(entry)}`
    }
  }

  afterStep(node: Watched): void {
    const now = node.core.fullStatus
    const before = this.#seen.get(node.core)
    if (before !== undefined) this.#assertNoRegress(node, before, now)
    if (now.role === 'leader') this.#assertLeader(node, before, now)
    if (now.commit > (before?.commit ?? now.commit)) this.#onCommit(node, before, now)
    this.#assertBounds(now)
    this.#seen.set(node.core, {
      term: now.term,
      commit: now.commit,
      applied: now.applied,
      role: now.role,
      lastIndex: now.last.index,
      lastTerm: now.last.term,
      configuration: now.configuration,
    })
  }

  #assertNoRegress(node: Watched, before: Seen, now: FullCoreStatus): void {
    assert(now.term >= before.term, `I8: the term of ${node.id} decreased`)
    assert(now.commit >= before.commit, `I8: the commit index of ${node.id} decreased`)
    assert(now.applied >= before.applied, `I8: the applied index of ${node.id} decreased`)
    const { base, commit, applied, last } = now
    assert(base.index <= applied, `I9: ${node.id} compacted entries that are not applied`)
    assert(
      applied <= commit && commit <= last.index,
      `I9: ${node.id} has a commit or applied index beyond its log`,
    )
    const isStillLeader =
      before.role === 'leader' && now.role === 'leader' && before.term === now.term
    if (!isStillLeader) return
    const isKept = now.base.index >= before.lastIndex
    assert(
      isKept || node.core.termAt(before.lastIndex) === before.lastTerm,
      `I2: leader ${node.id} replaced its own entries`,
    )
  }

  #assertLeader(node: Watched, before: Seen | undefined, now: FullCoreStatus): void {
    const leader = this.#leaders.get(now.term)
    assert(leader === undefined || leader === node.id, `I1: two leaders in term ${now.term}`)
    this.#leaders.set(now.term, node.id)
    const { voters, outgoingVoters } = now.configuration
    const isVoter = voters.includes(node.id) || outgoingVoters.includes(node.id)
    assert(isVoter || !now.isConfigurationCommitted, `I13: ${node.id} is leader, but not a voter`)
    if (before?.role === 'leader' && before.term === now.term) return
    assert(now.last.index >= this.committedIndex, `I4: leader ${node.id} lacks committed entries`)
    for (let index = now.base.index + 1; index < this.history.length; index += 1) {
      const isSame = node.core.termAt(index) === this.history[index]
      assert(isSame, `I4: leader ${node.id} has another entry at committed index ${index}`)
    }
  }

  #onCommit(node: Watched, before: Seen | undefined, now: FullCoreStatus): void {
    const isByCounting = now.role === 'leader' || before?.role === 'leader'
    const from = Math.max(before?.commit ?? 0, now.base.index) + 1
    let newest: Index | null = null
    for (let index = from; index <= now.commit; index += 1) {
      const term = node.core.termAt(index)
      if (term === null) continue
      const known = this.history[index]
      assert(
        known === undefined || known === term,
        `I5: ${node.id} commits another entry at ${index}`,
      )
      assert(
        known !== undefined || isByCounting,
        `I7: follower ${node.id} commits ${index} before any leader did`,
      )
      if (known === undefined) newest = index
      this.history[index] = term
    }
    if (newest !== null) this.#assertDurableQuorum(node, before, now, newest)
  }

  /**
   * I6 and I7. The commit was decided by the configuration in force before the turn. If the turn
   * changed it and committed more, the configuration after it decides.
   */
  #assertDurableQuorum(
    node: Watched,
    before: Seen | undefined,
    now: FullCoreStatus,
    index: Index,
  ): void {
    const term = node.core.termAt(index)
    assert(term === (before?.term ?? now.term), `I7: ${node.id} counted an entry of an old term`)
    const platters = this.#platters()
    const isHeldBy = (configuration: Configuration): boolean =>
      isQuorum(configuration, (id) => platters.get(id)?.holds(index, term ?? 0) === true)
    assert(
      isHeldBy(before?.configuration ?? now.configuration) || isHeldBy(now.configuration),
      `I6: ${node.id} commits ${index}, which is not on a quorum's disks`,
    )
  }

  #assertBounds(now: FullCoreStatus): void {
    for (const peer of now.peers) {
      assert(peer.matchIndex < peer.nextIndex, `next of ${peer.id} is not beyond its match`)
      assert(peer.matchIndex <= now.last.index, `match of ${peer.id} is beyond the log`)
    }
  }

  /**
   * Checks each write to a disk: the same position means the same entry and the same prefix (I3).
   */
  onWrite(entries: readonly Entry[], previousTerm: Term | null): void {
    let previous = previousTerm
    for (const entry of entries) {
      const key = `${entry.index}:${entry.term}`
      const value = `${fingerprint(entry)}`
      const known = this.#entries.get(key)
      assert(known === undefined || known === value, `I3: two entries at ${key}`)
      this.#entries.set(key, value)
      if (previous !== null) {
        const pastKey = `past:${key}`
        const past = this.#entries.get(pastKey)
        assert(
          past === undefined || past === String(previous),
          `I3: two previous entries of ${key}`,
        )
        this.#entries.set(pastKey, String(previous))
      }
      previous = entry.term
    }
  }

  /**
   * Checks a sent message: its promises must be on the sender's disk (I10), and a node votes once
   * per term (zoo 1).
   */
  onSend(sender: Watched, message: Message): void {
    const { platter } = sender
    const isPreVote = message.type.startsWith('vote') && 'pre' in message && message.pre
    if (!isPreVote) {
      assert(
        platter.hardState.term >= message.term,
        `I10: ${message.type} was sent before its term was durable`,
      )
    }
    if (message.type === 'voteResponse' && message.granted && !message.pre) {
      this.#onVote(sender, message.term, message.to)
    }
    if (message.type === 'voteRequest' && !message.pre) {
      this.#onVote(sender, message.term, sender.id)
    }
    if (message.type !== 'appendResponse' || !message.success) return
    if (platter.hardState.term !== message.term) return
    assert(
      platter.lastIndex >= message.matchIndex,
      'I10: an acknowledgment was sent before its entries were durable',
    )
    // A node that is already in a later term may have replaced the entry in memory. Its disk still
    // contains the entry that the message of the earlier term describes.
    if (sender.core.status.term !== message.term) return
    const term = sender.core.termAt(message.matchIndex)
    assert(
      term === null || platter.holds(message.matchIndex, term),
      'I10: the acknowledged entries are not those on disk',
    )
  }

  #onVote(sender: Watched, term: Term, candidate: NodeId): void {
    const key = `${sender.id}/${sender.store}/${term}`
    const known = this.#votes.get(key)
    assert(known === undefined || known === candidate, `two votes of ${sender.id} in term ${term}`)
    this.#votes.set(key, candidate)
    const { hardState } = sender.platter
    const isDurable = hardState.term > term || hardState.votedFor === candidate
    assert(isDurable, `I10: a vote of ${sender.id} was sent before it was durable`)
  }

  onApply(node: NodeId, entry: Entry): void {
    const value = `${entry.term}|${fingerprint(entry)}`
    const known = this.#appliedAs[entry.index]
    assert(
      known === undefined || known === value,
      `I5: ${node} applies another entry at ${entry.index}`,
    )
    assert(
      this.history[entry.index] === entry.term,
      `I5: ${node} applies ${entry.index}, which is not committed`,
    )
    this.#appliedAs[entry.index] = value
  }

  /** Slower checks, run occasionally: I11 and I12. */
  assertConfigurations(node: Watched): void {
    const now = node.core.fullStatus
    const entries = node.core.entries(now.base.index + 1, now.last.index)
    const changes = entries.filter((entry) => entry.type === 'configuration')
    const last = changes.at(-1)
    // A node that started from its state knows the configuration at that position without its log
    // entry.
    const isOfStart = now.configurationIndex <= now.applied && (last?.index ?? 0) <= now.applied
    assert(
      isOfStart || now.configurationIndex === last?.index,
      `I11: the configuration of ${node.id} is not the last one in its log`,
    )
    if (now.role !== 'leader') return
    const uncommitted = changes.filter((entry) => entry.index > now.commit)
    assert(uncommitted.length <= 1, `I12: ${node.id} has two changes in progress`)
  }

  /** Terms on disk survive every crash (I8, I16). */
  onRestart(platter: Platter, core: RaftCore): void {
    const before = this.#platterTerms.get(platter) ?? 0
    assert(platter.hardState.term >= before, 'I8: a term was lost in a crash')
    assert(
      core.status.term >= platter.hardState.term,
      'I16: a start has an earlier term than its disk',
    )
    this.#platterTerms.set(platter, platter.hardState.term)
  }
}
