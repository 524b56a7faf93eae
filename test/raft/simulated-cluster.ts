import { toBinary } from '@bufbuild/protobuf'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { assert } from '../../src/lib/assert.ts'
import { type Random, seededRandom } from '../../src/lib/random.ts'
import type { CoreStatus, ProposalResult } from '../../src/raft/effects.ts'
import { isLogUpToDate } from '../../src/raft/log.ts'
import type { CoreOptions } from '../../src/raft/options.ts'
import type { DiskWrite, Entry, Index, Message, NodeId, Term } from '../../src/raft/types.ts'
import { Announcements } from './announcements.ts'
import { drawFaults, drawOptions, type Faults } from './faults.ts'
import { type Held, Invariants } from './invariants.ts'
import { configurationOf, formingEntries, text } from './members.ts'
import { Operator } from './operator.ts'
import type { Platter } from './simulated-disk.ts'
import { SimulatedNode, type World } from './simulated-node.ts'
import { TraceHash } from '../sim/trace-hash.ts'
import { VirtualTime } from '../sim/virtual-time.ts'

interface Accepted {
  readonly index: Index
  readonly term: Term
  readonly body: string
}

const START_MS = 1_700_000_000_000
const SPARE_IDS = 2

/**
 * A whole cluster in one thread and in virtual time. One seed determines every delay, loss, crash,
 * partition, request and election timeout, so that a run can be repeated step by step.
 */
export class SimulatedCluster implements World {
  readonly seed: number
  readonly nodes = new Map<NodeId, SimulatedNode>()
  readonly invariants: Invariants
  readonly trace: TraceHash
  readonly faults: Faults
  readonly options: CoreOptions
  readonly time = new VirtualTime()
  readonly chance: Random
  /** Whether clients still send requests. */
  isServing = true
  /** Whether the simulation leaves disks undamaged. */
  isDamageSpared = false
  acknowledged = 0
  readsDone = 0
  elections = 0
  restarts = 0
  snapshots = 0
  damages = 0

  readonly #operator: Operator
  readonly #announcements = new Announcements()
  #isHealed = false
  /** Node → side of the partition; nodes on different sides receive nothing from each other. */
  #sides = new Map<NodeId, number>()
  /** One-way cuts, "from>to". */
  #deaf = new Set<string>()
  readonly #graves = new Map<NodeId, Platter>()
  #nextProposal = 1
  #open = new Map<string, string>()
  #accepted = new Map<NodeId, Accepted[]>()
  #acknowledgedBodies = new Map<Index, string>()
  #completedIndex: Index = 0
  #steps = 0

  constructor(seed: number, trace: (line: string) => void = () => undefined) {
    this.seed = seed
    this.chance = seededRandom(seed)
    this.faults = drawFaults(this.chance)
    this.options = drawOptions(this.chance)
    this.trace = new TraceHash(trace)
    this.invariants = new Invariants(() => this.#currentPlatters())
    const ids = Array.from({ length: this.faults.nodes }, (_, at) => `n${at + 1}`)
    const spares = Array.from({ length: SPARE_IDS }, (_, at) => `n${ids.length + at + 1}`)
    const record = configurationOf({ voters: ids })
    const entries = formingEntries(record)
    this.invariants.seedHistory(entries)
    this.#operator = new Operator(this, spares)
    for (const id of ids) {
      const node = this.addNode(id, 1, record)
      node.platter.entries = [...entries]
      node.platter.hardState = { term: 1, votedFor: null }
      node.platter.commit = entries.length
      this.startNode(node)
    }
    this.#every(this.faults.proposeMs, () => {
      this.#propose()
    })
    this.#every(this.faults.readMs, () => {
      this.#read()
    })
    this.#every(100, () => {
      this.#misfortune()
    })
    this.#every(this.faults.compactMs, () => {
      this.#persistAndCompact()
    })
  }

  get nowMs(): number {
    return this.time.nowMs
  }

  /**
   * Runs until that time with all faults and requests, and checks the invariants after each step.
   */
  async runUntil(untilMs: number): Promise<void> {
    while (this.time.runNext(untilMs)) {
      this.#steps += 1
      // Lets pending promises of restores and reads continue.
      await Promise.resolve()
    }
  }

  /** Stops all faults and restarts every stopped node, except nodes that await admission. */
  heal(): void {
    this.#isHealed = true
    this.#sides.clear()
    this.#deaf.clear()
    for (const node of this.nodes.values()) {
      if (!node.isRunning && !this.#operator.isAwaitingAdmission(node.id)) this.startNode(node)
    }
    this.trace.add(this.nowMs, 'heal')
  }

  get isHealed(): boolean {
    return this.#isHealed
  }

  get leader(): SimulatedNode | null {
    let found: SimulatedNode | null = null
    for (const node of this.nodes.values()) {
      if (!node.isRunning || node.core.status.role !== 'leader') continue
      if (found === null || found.core.status.term < node.core.status.term) found = node
    }
    return found
  }

  /** Grows while any node makes progress. */
  get progress(): number {
    let sum = 0
    for (const node of this.nodes.values()) sum += node.machine.position.index
    return sum
  }

  /**
   * null when the cluster is at rest and all nodes agree; otherwise a description of the
   * difference.
   */
  unrest(): string | null {
    const { leader } = this
    if (leader === null) return 'no leader'
    const { configuration, commit, last, isConfigurationCommitted } = leader.core.fullStatus
    if (configuration.outgoingVoters.length > 0) return 'a joint configuration was not left'
    if (!isConfigurationCommitted || commit !== last.index) return 'entries are not committed'
    for (const id of [leader.id, ...configuration.voters, ...configuration.learners]) {
      const node = this.nodes.get(id)
      if (node?.isRunning !== true) return `${id} is down`
      const { position, digest } = node.machine
      if (position.index !== commit) return `${id} applied ${position.index} of ${commit}`
      assert(digest === leader.machine.digest, `I5: ${id} has another state at ${commit}`)
      const { role, leader: known } = node.core.status
      if (known !== leader.id) return `${id} is ${role} under ${known}, not ${leader.id}`
    }
    return null
  }

  /**
   * I14: the index of every acknowledged write is committed. `onApplied` compares the content of
   * the write.
   */
  assertAcknowledgedKept(): void {
    for (const [index] of this.#acknowledgedBodies) {
      assert(index <= this.invariants.committedIndex, `I14: acknowledged entry ${index} is missing`)
    }
  }

  // Functions that the nodes call.

  after(delayMs: number, task: () => void): void {
    this.time.after(delayMs, task)
  }

  random(): number {
    return this.chance.next()
  }

  clockMs(id: NodeId): number {
    return START_MS + Math.floor(this.nowMs) + (this.faults.clockOffsetsMs.get(id) ?? 0)
  }

  syncMs(_id: NodeId): number {
    const { faults, chance } = this
    if (!this.#isHealed && chance.next() < faults.slowDiskChance) return chance.integer(200, 2_500)
    return chance.integer(0, faults.syncMsMax)
  }

  applyMs(): number {
    return this.chance.integer(0, this.faults.applyMsMax)
  }

  restoreMs(): number {
    return this.chance.integer(0, 400)
  }

  onTurn(node: SimulatedNode): void {
    this.invariants.afterStep(node)
    if (this.#steps % 64 === 0) this.invariants.assertConfigurations(node)
    if (this.#steps % 16 === 0) this.#announcements.greet(node, node.machine.position.index)
    this.#boundsOf(node)
  }

  onWrite(node: SimulatedNode, write: DiskWrite): void {
    const first = write.entries[0]
    if (first === undefined) return
    const last = write.entries.at(-1)
    this.trace.add(this.nowMs, node.id, 'write', first.index, last?.index, last?.term)
    this.invariants.onWrite(write.entries, node.core.termAt(first.index - 1))
  }

  onApplied(node: SimulatedNode, entry: Entry): void {
    this.trace.add(this.nowMs, node.id, 'apply', entry.index, entry.term)
    this.invariants.onApply(node.id, entry)
    this.#announcements.onApplied(node, entry.index)
    this.#completedIndex = Math.max(this.#completedIndex, entry.index)
    this.#assertStamp(entry)
    const accepted = this.#accepted.get(node.id) ?? []
    const at = accepted.findIndex((one) => one.index === entry.index)
    const promise = accepted[at]
    if (promise === undefined) return
    accepted.splice(at, 1)
    if (promise.term !== entry.term) return
    assert(
      new TextDecoder().decode(entry.data) === promise.body,
      `I14: entry ${entry.index} is not the one that was accepted`,
    )
    this.acknowledged += 1
    this.#acknowledgedBodies.set(entry.index, promise.body)
  }

  onProposals(node: SimulatedNode, results: readonly ProposalResult[]): void {
    for (const result of results) {
      const key = `${node.id}/${result.id}`
      const body = this.#open.get(key)
      if (body === undefined) continue
      this.#open.delete(key)
      if (!result.ok) continue
      const list = this.#accepted.get(node.id) ?? []
      list.push({ index: result.index, term: result.term, body })
      this.#accepted.set(node.id, list)
    }
  }

  onStatus(node: SimulatedNode, status: CoreStatus): void {
    const { role, term, leader, configurationIndex } = status
    if (role === 'leader') this.elections += 1
    this.#operator.learn(status)
    this.trace.add(this.nowMs, node.id, role, term, leader ?? '-', configurationIndex)
  }

  send(from: SimulatedNode, message: Message): void {
    this.invariants.onSend(from, message)
    this.#announcements.onSend(from, message)
    const { chance, faults } = this
    const isLost = !this.#isHealed && chance.next() < faults.lossChance
    const copies = isLost ? 0 : !this.#isHealed && chance.next() < faults.repeatChance ? 2 : 1
    for (let copy = 0; copy < copies; copy += 1) {
      const isLate = !this.#isHealed && chance.next() < faults.lateChance
      const delayMs = chance.integer(0, isLate ? 1_500 : faults.delayMsMax)
      this.after(delayMs, () => {
        this.#deliver(from, message)
      })
    }
  }

  onSendSnapshot(node: SimulatedNode, to: NodeId): void {
    const life = node.life
    const state = this.chance.next() < 0.5 ? node.persisted : node.machine
    const { term } = node.core.status
    this.after(this.chance.integer(10, 800), () => {
      if (node.life !== life) return
      const target = this.nodes.get(to)
      const isArrived =
        target?.isRunning === true && this.#isReachable(node, target) && this.chance.next() < 0.8
      if (!isArrived) {
        node.node.snapshotFailed(to)
        return
      }
      const configuration = toBinary(ConfigurationSchema, state.configuration)
      const { position } = state
      this.snapshots += 1
      target.received.set(position.index, state)
      target.node.receive({ type: 'snapshot', from: node.id, to, term, position, configuration })
      node.node.snapshotSent(to)
    })
  }

  // Nodes and their faults.

  addNode(
    id: NodeId,
    store: number,
    record: SimulatedNode['persisted']['configuration'],
  ): SimulatedNode {
    const node = new SimulatedNode(this, this.options, id, store, record)
    this.nodes.set(id, node)
    return node
  }

  startNode(node: SimulatedNode): void {
    this.trace.add(this.nowMs, node.id, 'start', node.platter.lastIndex)
    const core = node.start()
    this.invariants.onRestart(node.platter, core)
    this.#announcements.greet(node, node.machine.position.index)
    this.restarts += 1
  }

  removeNode(node: SimulatedNode): void {
    this.trace.add(this.nowMs, node.id, 'wiped')
    node.crash(0)
    this.#accepted.delete(node.id)
    this.nodes.delete(node.id)
    this.#graves.set(node.id, node.platter)
  }

  crash(node: SimulatedNode): void {
    this.trace.add(this.nowMs, node.id, 'crash')
    node.crash(this.chance.next() < 0.5 ? this.chance.next() : 0)
    const isDamaged = this.chance.next() < this.faults.damageChance
    if (isDamaged && !this.isDamageSpared) this.#damage(node)
    // No client remains that could receive the result.
    this.#accepted.delete(node.id)
    for (const key of this.#open.keys()) if (key.startsWith(`${node.id}/`)) this.#open.delete(key)
    this.after(this.chance.integer(10, 4_000), () => {
      if (this.nodes.get(node.id) === node && !node.isRunning) this.startNode(node)
    })
  }

  /**
   * Damages one disk at a time: if two of three voters had damaged disks, the cluster would have no
   * majority.
   */
  #damage({ id, platter, persisted }: SimulatedNode): void {
    const { chance } = this
    if ([...this.nodes.values()].some((node) => node.platter.owed !== null)) return
    const { position } = persisted
    if (position.index < platter.base.index || position.index > platter.lastIndex) return
    const keptCount = chance.integer(0, platter.lastIndex - position.index)
    platter.damage(position, keptCount, chance.next() < 0.5)
    this.damages += 1
    this.trace.add(this.nowMs, id, 'damage', position.index + keptCount)
  }

  #deliver(from: SimulatedNode, message: Message): void {
    const target = this.nodes.get(message.to)
    if (target?.isRunning !== true || !this.#isReachable(from, target)) return
    // A stranger's messages carry no store ID, as if no mesh distinguished disks.
    target.node.receive(message, from.isHeardAsStranger ? undefined : Uint8Array.of(from.store))
  }

  /**
   * Reachability includes the mesh: each side accepts the other only with the disk with which it
   * was admitted.
   */
  #isReachable(from: SimulatedNode, to: SimulatedNode): boolean {
    if (this.nodes.get(from.id) !== from || !from.isRunning) return false
    if (this.#deaf.has(`${from.id}>${to.id}`)) return false
    if ((this.#sides.get(from.id) ?? 0) !== (this.#sides.get(to.id) ?? 0)) return false
    return isKnownAs(from, to) && isKnownAs(to, from)
  }

  #misfortune(): void {
    this.#operator.repair()
    if (this.#isHealed) return
    const { chance, faults } = this
    for (const node of this.nodes.values()) {
      if (node.isRunning && chance.next() < faults.crashChance) this.crash(node)
    }
    if (chance.next() < faults.partitionChance) this.#partition()
    else if (this.#sides.size + this.#deaf.size > 0 && chance.next() < faults.rejoinChance) {
      this.#sides.clear()
      this.#deaf.clear()
      this.trace.add(this.nowMs, 'rejoin')
    }
    if (chance.next() < faults.breakChance) this.#breakConnection()
    if (chance.next() < faults.transferChance) void this.leader?.node.transferLeadership(null)
    if (chance.next() < faults.changeChance) this.#operator.act()
    this.#operator.tidy()
  }

  #partition(): void {
    this.#sides.clear()
    this.#deaf.clear()
    const kind = this.chance.integer(0, 2)
    for (const id of this.nodes.keys()) {
      if (kind < 2) this.#sides.set(id, this.chance.integer(0, 1))
      for (const other of this.nodes.keys()) {
        if (kind === 2 && this.chance.next() < 0.3) this.#deaf.add(`${id}>${other}`)
      }
    }
    this.trace.add(this.nowMs, 'partition', kind)
  }

  #breakConnection(): void {
    const ids = [...this.nodes.keys()]
    const from = this.nodes.get(ids[this.chance.integer(0, ids.length - 1)] ?? '')
    const to = ids[this.chance.integer(0, ids.length - 1)]
    if (from?.isRunning === true && to !== undefined) from.node.unreachable(to)
  }

  // Clients.

  /**
   * Proposals go to every node that regards itself as leader, also if another node leads by now.
   */
  #propose(): void {
    if (!this.isServing) return
    for (const node of this.nodes.values()) {
      if (!node.isRunning || node.core.status.role !== 'leader') continue
      const count = this.chance.integer(1, this.faults.batchMax)
      const proposals = []
      for (let at = 0; at < count; at += 1) {
        const id = this.#nextProposal
        this.#nextProposal += 1
        const body = `${id}${'.'.repeat(this.chance.integer(0, 60))}`
        this.#open.set(`${node.id}/${id}`, body)
        proposals.push({ id, data: text(body) })
      }
      node.node.propose(proposals)
    }
  }

  /** I15: a read sees all writes that completed anywhere before it began. */
  #read(): void {
    for (const node of this.nodes.values()) {
      if (!node.isRunning || node.core.status.role !== 'leader') continue
      const completed = this.#completedIndex
      void node.node.readIndex().then((result) => {
        if (!result.ok) return
        this.readsDone += 1
        if (result.index >= completed) return
        this.after(0, () => {
          assert(
            false,
            `I15: ${node.id} reads at ${result.index}, but ${completed} was complete before`,
          )
        })
      })
    }
  }

  #persistAndCompact(): void {
    const { chance } = this
    for (const node of this.nodes.values()) {
      if (!node.isRunning || chance.next() < 0.3) continue
      node.persist()
      const { base, applied } = node.core.fullStatus
      const spare = Math.min(applied, node.persisted.position.index) - base.index
      if (spare < 2 || chance.next() < 0.4) continue
      const index = base.index + chance.integer(1, spare)
      const term = node.core.termAt(index)
      if (term !== null) node.node.compact({ term, index })
    }
  }

  #every(periodMs: number, task: () => void): void {
    this.after(this.chance.integer(1, periodMs), () => {
      task()
      this.#every(periodMs, task)
    })
  }

  /** I17: the bounds of a node. */
  #boundsOf(node: SimulatedNode): void {
    const { uncommittedBytes, peers } = node.core.fullStatus
    const entryMax = 4_096
    const { uncommittedBytesMax, windowBytesMax, appendBytesMax } = this.options
    // A new leader inherits the uncommitted entries of earlier leaders, each of which kept the
    // bound.
    assert(
      uncommittedBytes <= uncommittedBytesMax * 8 + entryMax,
      'I17: too many uncommitted bytes',
    )
    for (const { bytesInFlight } of peers) {
      assert(
        bytesInFlight <= windowBytesMax + appendBytesMax + entryMax,
        'I17: too many bytes in flight',
      )
    }
  }

  /**
   * If most clocks are right, log time is never further ahead than the allowed skew, whichever node
   * leads.
   */
  #assertStamp(entry: Entry): void {
    if (entry.index <= 2 || !this.faults.isStampChecked) return
    const latest = START_MS + this.nowMs + this.options.clockSkewMaxMs
    assert(entry.timeMs <= latest, `log time is ${entry.timeMs - latest} ms too far ahead`)
  }

  /**
   * For each name, the entries that count: those of the current disk, and those of the last
   * destroyed disk, because that disk had acknowledged them.
   */
  #currentPlatters(): ReadonlyMap<NodeId, Held> {
    const platters = new Map<NodeId, Held>(this.#graves)
    for (const [id, { platter }] of this.nodes) {
      const grave = this.#graves.get(id)
      // A node whose missing tail includes an entry votes only for candidates that have the entry.
      // For an election this is equivalent to having the entry itself.
      const holds = (index: Index, term: Term): boolean =>
        platter.holds(index, term) ||
        (platter.owed !== null && isLogUpToDate(platter.owed, { index, term })) ||
        grave?.holds(index, term) === true
      platters.set(id, { holds })
    }
    return platters
  }
}

/**
 * Whether `viewer` would accept a connection of `other`: `viewer` compares the disk of `other` with
 * the disk in its own record, if the record names one.
 */
function isKnownAs(viewer: SimulatedNode, other: SimulatedNode): boolean {
  const { members } = viewer.core.status.configurationRecord
  const member = members.find((one) => one.id === other.id)
  return member === undefined || other.isHeardAsStranger || member.storeId[0] === other.store
}
