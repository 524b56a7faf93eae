import { fromBinary } from '@bufbuild/protobuf'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
  type Member,
} from '../../proto/gen/membership_pb.ts'
import { encodeConfiguration } from '../../src/raft/configuration.ts'
import { assert } from '../../src/lib/assert.ts'
import type { RaftCore, FullCoreStatus } from '../../src/raft/core.ts'
import type { Configuration, Entry, Index, Message, NodeId, Term } from '../../src/raft/types.ts'
import { isQuorum } from '../raft/slow-quorum.ts'
import type { Platter } from './platter.ts'
import type { Tally } from './tally.ts'

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
  readonly configurationIndex: Index
  readonly configurationRecord: ConfigurationRecord
  readonly matches: ReadonlyMap<NodeId, Index>
}

/** FNV-1a over the content of an entry; different entries differ with high probability. */
export function fingerprint({ type, timeMs, data }: Entry): number {
  let hash = (0x811c9dc5 ^ type.length ^ (timeMs % 4294967291)) >>> 0
  for (const byte of data) hash = Math.imul(hash ^ byte, 0x01000193)
  return Math.imul(hash ^ data.length, 0x01000193) >>> 0
}

/**
 * Invariants checked from outside after every step (numbered as in docs/internals/engine.md): I1
 * one leader per term, I2 a leader only appends, I3 log matching, I4 leader completeness, I5 one
 * history for all nodes, I6 committed means durable on a quorum of the configurations in force, I7
 * the entry that commits is of the leader's own term, I8 nothing regresses, even across crashes, I9
 * no gap between state and log, I10 nothing is promised before it is durable, I11 the configuration
 * in force is the last in the log, I12 one change at a time and none before a commit of the own
 * term, I13 only voters lead, I16 every start succeeds, I17 bounds.
 */
export class Invariants {
  /** index → term of the entry committed there. */
  readonly history: Term[] = []
  /** Term → the newest index that its leader committed. */
  readonly #committedIn = new Map<Term, Index>()
  /**
   * Nodes whose log may lack acknowledged entries; they report the missing tail to their leader.
   */
  readonly forgetful = new Set<NodeId>()
  readonly #tally: Tally
  readonly #leaders = new Map<Term, NodeId>()
  /** "index:term" → fingerprint of the entry there, and the term before it. */
  readonly #entries = new Map<string, number>()
  readonly #pasts = new Map<string, Term>()
  readonly #votes = new Map<string, NodeId>()
  readonly #appliedAs: number[] = []
  readonly #digests = new Map<Index, string>()
  /** index → configuration committed there. */
  readonly #configurations = new Map<Index, Uint8Array>()
  /** index → virtual ms at which the configuration there was committed. */
  readonly #committedAtMs = new Map<Index, number>()
  readonly #written = new Map<string, Uint8Array>()
  readonly #seen = new Map<RaftCore, Seen>()
  readonly #platters: () => ReadonlyMap<NodeId, Held>
  readonly #nowMs: () => number

  constructor(tally: Tally, platters: () => ReadonlyMap<NodeId, Held>, nowMs: () => number) {
    this.#tally = tally
    this.#platters = platters
    this.#nowMs = nowMs
  }

  get committedIndex(): Index {
    return Math.max(0, this.history.length - 1)
  }

  /** Members of the newest committed configuration. */
  get newestMembers(): readonly Member[] {
    return this.membersAt(Infinity)
  }

  /** Members of the configuration that was the newest committed one at that virtual time. */
  membersAt(ms: number): readonly Member[] {
    const known = [...this.#configurations.keys()].filter(
      (index) => (this.#committedAtMs.get(index) ?? 0) <= ms,
    )
    const newest = Math.max(...known)
    const data = this.#configurations.get(newest)
    return data === undefined ? [] : fromBinary(ConfigurationSchema, data).members
  }

  seedHistory(entries: readonly Entry[]): void {
    for (const entry of entries) {
      this.history[entry.index] = entry.term
      this.#committedIn.set(entry.term, entry.index)
      this.#appliedAs[entry.index] = fingerprint(entry)
      if (entry.type === 'configuration') this.#configurations.set(entry.index, entry.data)
    }
  }

  afterStep(node: Watched): FullCoreStatus {
    const now = node.core.fullStatus
    const before = this.#seen.get(node.core)
    if (before !== undefined) this.#assertNoRegress(node, before, now)
    if (now.role === 'leader') this.#assertLeader(node, before, now)
    if (now.commit > (before?.commit ?? now.commit)) this.#onCommit(node, before, now)
    if (now.configurationIndex !== before?.configurationIndex)
      this.#onConfiguration(node, before, now)
    if (now.base.index > (before?.lastIndex ?? Infinity)) this.#assertOfSnapshot(node, now)
    this.#assertBounds(now, before)
    this.#seen.set(node.core, {
      term: now.term,
      commit: now.commit,
      applied: now.applied,
      role: now.role,
      lastIndex: now.last.index,
      lastTerm: now.last.term,
      configuration: now.configuration,
      configurationIndex: now.configurationIndex,
      configurationRecord: now.configurationRecord,
      matches: new Map(now.peers.map(({ id, matchIndex }) => [id, matchIndex])),
    })
    return now
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
    if (before.role === 'leader' && now.role === 'follower' && before.term === now.term) {
      this.#tally.note('leader without quorum stepped down')
    }
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
    this.#tally.note('election won')
    // A late leader, for example one paused before it received its votes, must hold only entries
    // committed in earlier terms.
    const committed = this.#committedBefore(now.term)
    assert(now.last.index >= committed, `I4: leader ${node.id} lacks committed entries`)
    for (let index = now.base.index + 1; index <= committed; index += 1) {
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
      if (known !== undefined) continue
      newest = index
      this.history[index] = term
      const configuration = this.#written.get(`${index}:${term}`)
      if (configuration === undefined) continue
      this.#configurations.set(index, configuration)
      this.#committedAtMs.set(index, this.#nowMs())
    }
    if (newest === null) return
    this.#committedIn.set(node.core.termAt(newest) ?? now.term, newest)
    this.#assertDurableQuorum(node, before, now, newest)
  }

  #committedBefore(term: Term): Index {
    let newest = 0
    for (const [earlier, index] of this.#committedIn)
      if (earlier < term) newest = Math.max(newest, index)
    return newest
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

  /** Checks the invariants I11 and I12 whenever the configuration in force changes. */
  #onConfiguration(node: Watched, before: Seen | undefined, now: FullCoreStatus): void {
    const { configurationIndex: index } = now
    const canonical = this.#configurations.get(index)
    // An entry of an earlier term that is not replaced yet may have the same index.
    if (canonical !== undefined && index <= now.commit) {
      const own = encodeConfiguration(now.configurationRecord)
      assert(
        Buffer.compare(own, canonical) === 0,
        `I11: ${node.id} has another configuration in force than the one committed at ${index}`,
      )
    }
    for (const at of this.#configurations.keys()) {
      assert(
        at <= index || at > now.commit,
        `I11: ${node.id} keeps the configuration of ${index}, but that of ${at} is committed`,
      )
    }
    if (before !== undefined && index < before.configurationIndex) {
      this.#tally.note('configuration rolled back')
    }
    const wasJoint = (before?.configuration.outgoingVoters.length ?? 0) > 0
    if (wasJoint && now.configuration.outgoingVoters.length === 0) {
      this.#tally.note('joint configuration left')
    }
    const isOwn = now.role === 'leader' && before?.role === 'leader' && before.term === now.term
    if (!isOwn || index <= (before?.configurationIndex ?? 0)) return
    assert(
      node.core.termAt(before.commit) === now.term || node.core.termAt(now.commit) === now.term,
      `I12: ${node.id} changes the members before an entry of its term is committed`,
    )
  }

  /**
   * I11 after an install: the log holds no configuration, so the committed one must be in force.
   */
  #assertOfSnapshot(node: Watched, now: FullCoreStatus): void {
    if (now.last.index > now.base.index) return
    const index = Math.max(...[...this.#configurations.keys()].filter((at) => at <= now.base.index))
    const canonical = this.#configurations.get(index)
    assert(
      canonical === undefined ||
        Buffer.compare(encodeConfiguration(now.configurationRecord), canonical) === 0,
      `I11: ${node.id} has another configuration in force after a snapshot than the one committed at ${index}`,
    )
  }

  #assertBounds(now: FullCoreStatus, before: Seen | undefined): void {
    const isSameLeadership = before?.role === 'leader' && before.term === now.term
    for (const peer of now.peers) {
      assert(
        peer.matchIndex < peer.nextIndex,
        `I10: the next index of ${peer.id} is not beyond its match index`,
      )
      assert(
        peer.matchIndex <= now.last.index,
        `I10: the match index of ${peer.id} is beyond the log`,
      )
      if (!isSameLeadership) continue
      const earlier = before.matches.get(peer.id) ?? 0
      assert(
        peer.matchIndex >= earlier ||
          this.forgetful.has(peer.id) ||
          !isSameDisk(peer.id, before.configurationRecord, now.configurationRecord),
        `I10: the match index of ${peer.id} decreased from ${earlier} to ${peer.matchIndex}`,
      )
    }
  }

  /**
   * Checks each write to a disk: the same position means the same entry and the same prefix (I3).
   */
  onWrite(
    node: Pick<Watched, 'platter'>,
    entries: readonly Entry[],
    previousTerm: Term | null,
  ): void {
    const first = entries[0]
    if (first !== undefined && first.index <= node.platter.writtenIndex)
      this.#tally.note('log truncated')
    let previous = previousTerm
    for (const entry of entries) {
      const key = `${entry.index}:${entry.term}`
      const value = fingerprint(entry)
      const known = this.#entries.get(key)
      assert(known === undefined || known === value, `I3: two entries at ${key}`)
      this.#entries.set(key, value)
      if (entry.type === 'configuration') this.#written.set(key, entry.data)
      if (previous !== null) {
        const past = this.#pasts.get(key)
        assert(past === undefined || past === previous, `I3: two previous entries of ${key}`)
        this.#pasts.set(key, previous)
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
    const isPreVote =
      (message.type === 'voteRequest' || message.type === 'voteResponse') && message.pre
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
    assert(
      known === undefined || known === candidate,
      `I10: two votes of ${sender.id} in term ${term}`,
    )
    this.#votes.set(key, candidate)
    const { hardState } = sender.platter
    const isDurable = hardState.term > term || hardState.votedFor === candidate
    assert(isDurable, `I10: a vote of ${sender.id} was sent before it was durable`)
  }

  onApply(node: NodeId, entry: Entry): void {
    const value = fingerprint(entry)
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

  /** Checks the invariant I5: the state at one index is the same on every controller. */
  onDigest(node: NodeId, index: Index, digest: string): void {
    const known = this.#digests.get(index)
    assert(known === undefined || known === digest, `I5: ${node} has another state at ${index}`)
    this.#digests.set(index, digest)
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
    // A new leader may not know yet that the first of two changes is committed.
    const known = Math.max(now.commit, this.committedIndex)
    const uncommitted = changes.filter((entry) => entry.index > known)
    assert(uncommitted.length <= 1, `I12: ${node.id} has two changes in progress`)
  }

  /**
   * Checks the invariants I8 and I16: after a restart, the term of a node is not lower than the
   * terms on its disk.
   */
  onRestart(node: Watched): void {
    const { term, last } = node.core.fullStatus
    assert(term >= node.platter.hardState.term, 'I16: a start has an earlier term than its disk')
    assert(
      term >= last.term,
      `I16: ${node.id} starts in term ${term}, but its log ends in ${last.term}`,
    )
  }
}

/** Whether both configurations list that member with the same disk; another disk starts empty. */
function isSameDisk(id: NodeId, before: ConfigurationRecord, now: ConfigurationRecord): boolean {
  const [old, current] = [before, now].map(({ members }) =>
    members.find((member) => member.id === id),
  )
  if (old === undefined || current === undefined) return false
  return Buffer.compare(old.storeId, current.storeId) === 0
}
