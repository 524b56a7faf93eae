import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { assert, requirePresent } from '../../src/lib/assert.ts'
import type { Random } from '../../src/lib/random.ts'
import { configurationFromRecord } from '../../src/raft/configuration.ts'
import { RaftCore } from '../../src/raft/core.ts'
import type { CoreEffects, OutgoingMessage } from '../../src/raft/effects.ts'
import type { CoreInput } from '../../src/raft/input.ts'
import { type CoreOptions, defaultCoreOptions } from '../../src/raft/options.ts'
import type { Configuration, Entry, Message, NodeId, Position, Term } from '../../src/raft/types.ts'
import { configurationOf, FORMED_MS, formingEntries, type MemberList, text } from './members.ts'
import { Platter, SimulatedDisk } from './simulated-disk.ts'

const NOW_MS = 1_700_000_000_000

/** Every random timeout is the longest, so that only the node that a script picks campaigns. */
const longest: Random = { next: () => 0.5, integer: (_min, max) => max }

interface Life {
  readonly core: RaftCore
  readonly disk: SimulatedDisk
  readonly syncs: (() => void)[]
  gated: OutgoingMessage[]
  durableToken: number
}

interface ScriptNode {
  readonly id: NodeId
  /** Number of the node's disk; changes after a wipe. */
  readonly store: number
  readonly platter: Platter
  applied: Position
  isDiskHeld: boolean
  isApplyHeld: boolean
  /** Log time of the last entry that the state machine received. */
  appliedTimeMs: number
  life: Life | null
}

/**
 * Cores that run only when a test steps them, for the golden scripts and the tests of the paper's
 * rules.
 */
export class ScriptCluster {
  /** Events since the last `take`, one line each. */
  events: string[] = []
  isTracing = false
  flights: Message[] = []
  readonly #nodes = new Map<NodeId, ScriptNode>()
  readonly #list: MemberList
  readonly #options: CoreOptions
  readonly #cuts = new Set<string>()
  readonly #applied = new Map<NodeId, Entry[]>()
  readonly #clockOffsetsMs = new Map<NodeId, number>()
  #nextId = 1

  constructor(list: MemberList, options: Partial<CoreOptions> = {}) {
    this.#list = list
    this.#options = { ...defaultCoreOptions, ...options }
    for (const id of [...list.voters, ...(list.learners ?? [])]) this.add(id)
  }

  /** Starts an empty node under a name that may have had another disk before. */
  wipe(id: NodeId, store: number): void {
    this.crash(id)
    this.#make(id, store)
    this.restart(id)
  }

  #make(id: NodeId, store: number): void {
    const platter = new Platter()
    const node: ScriptNode = {
      id,
      store,
      platter,
      applied: { term: 0, index: 0 },
      isDiskHeld: false,
      isApplyHeld: false,
      appliedTimeMs: 0,
      life: null,
    }
    this.#nodes.set(id, node)
  }

  add(id: NodeId): void {
    this.#make(id, this.#list.stores?.get(id) ?? 1)
    if (this.#list.voters.includes(id) || this.#list.learners?.includes(id) === true) {
      this.setLog(id, { term: 1, terms: [] })
    }
    this.restart(id)
  }

  /**
   * Sets a node's disk to a state that would take long to reach: `terms` are those of the entries
   * after the two initial entries.
   */
  setLog(
    id: NodeId,
    log: { readonly term: Term; readonly vote?: NodeId; readonly terms: readonly Term[] },
  ): void {
    const node = this.#node(id)
    node.life = null
    node.platter.hardState = { term: log.term, votedFor: log.vote ?? null }
    const entries = formingEntries(configurationOf(this.#list))
    for (const term of log.terms) {
      const index = entries.length + 1
      const data = text(`${term}.${index}`)
      entries.push({ index, term, timeMs: FORMED_MS, type: 'command', data })
    }
    node.platter.entries = entries
    node.platter.commit = 2
    node.applied = { term: 1, index: 2 }
  }

  crash(id: NodeId): void {
    const node = this.#node(id)
    node.life?.disk.crash(0)
    node.life = null
    this.flights = this.flights.filter((message) => message.from !== id && message.to !== id)
  }

  restart(id: NodeId): void {
    const node = this.#node(id)
    const syncs: (() => void)[] = []
    const timing = {
      syncMs: () => 0,
      after: (_delayMs: number, task: () => void) => syncs.push(task),
    }
    const disk = new SimulatedDisk(node.platter, timing)
    const core = RaftCore.restore({
      id,
      storeId: Uint8Array.of(node.store),
      options: this.#options,
      random: longest,
      log: node.platter.restored(),
      applied: node.applied,
      configuration: configurationOf(this.#list),
      appliedTimeMs: 0,
    })
    const life: Life = { core, disk, syncs, gated: [], durableToken: 0 }
    disk.onDurable = (token) => {
      life.durableToken = token
      this.step(id, { type: 'persisted', token })
    }
    node.life = life
    this.#pump(node)
  }

  core(id: NodeId): RaftCore {
    return this.#life(id).core
  }

  platter(id: NodeId): Platter {
    return this.#node(id).platter
  }

  appliedBy(id: NodeId): readonly Entry[] {
    return this.#applied.get(id) ?? []
  }

  /** The initial configuration as text. */
  get startsWith(): string {
    return describeConfiguration(configurationFromRecord(configurationOf(this.#list)))
  }

  get ids(): readonly NodeId[] {
    return [...this.#nodes.keys()]
  }

  isRunning(id: NodeId): boolean {
    return (this.#nodes.get(id)?.life ?? null) !== null
  }

  /**
   * Truncates a stopped node's log to its first entries; the entries it had acknowledged after them
   * become its missing tail.
   */
  damage(id: NodeId, lastIndex: number, owed: Position | null): void {
    const node = this.#node(id)
    assert(node.life === null, 'a disk is damaged while its node is down')
    const { platter } = node
    const whole = { term: platter.termAt(platter.lastIndex) ?? 0, index: platter.lastIndex }
    platter.owed = owed ?? whole
    platter.entries = platter.entries.slice(0, lastIndex - platter.base.index)
    platter.commit = Math.min(platter.commit, lastIndex)
    if (node.applied.index > lastIndex) {
      node.applied = { term: platter.termAt(lastIndex) ?? 0, index: lastIndex }
    }
  }

  /**
   * While `isHeld` is true, the state machine does not report the entries that it receives as
   * applied.
   */
  holdApply(id: NodeId, isHeld: boolean): void {
    const node = this.#node(id)
    node.isApplyHeld = isHeld
    if (isHeld) return
    this.#reportApplied(node, this.#life(id))
    this.#pump(node)
  }

  holdDisk(id: NodeId, isHeld: boolean): void {
    this.#node(id).isDiskHeld = isHeld
  }

  /** Completes the pending sync, even of a disk whose syncs the test delays. */
  sync(id: NodeId): void {
    this.#life(id).syncs.shift()?.()
  }

  step(id: NodeId, input: CoreInput): void {
    this.core(id).step(input)
    this.#pump(this.#node(id))
  }

  tick(id: NodeId, count = 1): void {
    for (let at = 0; at < count; at += 1) this.step(id, { type: 'tick', nowMs: this.#nowMs(id) })
  }

  propose(id: NodeId, ...bodies: readonly string[]): void {
    const proposals = bodies.map((body) => ({ id: this.#nextId++, data: text(body) }))
    this.step(id, { type: 'propose', proposals, nowMs: this.#nowMs(id) })
  }

  change(id: NodeId, list: MemberList, basedOn?: number): void {
    const target = configurationOf(list)
    const base = basedOn === undefined ? {} : { basedOn }
    this.step(id, {
      type: 'changeConfiguration',
      id: this.#nextId++,
      target,
      ...base,
      nowMs: this.#nowMs(id),
    })
  }

  receive(message: Message, store?: number): void {
    const storeId = store === undefined ? {} : { storeId: Uint8Array.of(store) }
    const nowMs = this.#nowMs(message.to)
    this.step(message.to, { type: 'message', message, ...storeId, nowMs })
  }

  /** Sets the offset of a node's clock from the common start time. */
  setClock(id: NodeId, offsetMs: number): void {
    this.#clockOffsetsMs.set(id, offsetMs)
  }

  #nowMs(id: NodeId): number {
    return NOW_MS + (this.#clockOffsetsMs.get(id) ?? 0)
  }

  cut(from: NodeId, to: NodeId): void {
    this.#cuts.add(`${from}>${to}`)
    this.flights = this.flights.filter((one) => one.from !== from || one.to !== to)
  }

  heal(): void {
    this.#cuts.clear()
  }

  /** Ticks a node until its election timeout ends. Its vote requests stay in flight. */
  campaign(id: NodeId): void {
    for (let at = 0; at < 30 && this.core(id).status.role === 'follower'; at += 1) this.tick(id)
  }

  /**
   * All nodes that can hear `id` forget their leader; then `id` campaigns and everything settles.
   */
  elect(id: NodeId): void {
    this.flights = []
    for (const other of this.ids) {
      if (other === id || !this.isRunning(other) || this.#cuts.has(`${id}>${other}`)) continue
      const { electionTimeoutTicks } = this.#options
      const isLeader = this.core(other).status.role === 'leader'
      this.tick(other, isLeader ? electionTimeoutTicks + 1 : electionTimeoutTicks)
    }
    this.flights = []
    this.campaign(id)
    this.settle()
  }

  /** Delivers and syncs among `ids`, or all nodes, until nothing more happens. */
  settle(ids: readonly NodeId[] = this.ids): void {
    for (let rounds = 0; rounds < 10_000; rounds += 1) {
      for (const id of ids) this.#syncAll(id)
      const at = this.flights.findIndex((one) => ids.includes(one.to) && ids.includes(one.from))
      if (at < 0) return
      const [message] = this.flights.splice(at, 1)
      if (message !== undefined) this.#deliver(message)
    }
    assert(false, 'the cluster does not settle')
  }

  /**
   * Delivers the messages in flight on one link. With `isKept` they stay in flight and arrive a
   * second time later.
   */
  deliver(from: NodeId, to: NodeId, isKept = false): void {
    const isOnLink = (one: Message): boolean => one.from === from && one.to === to
    const due = this.flights.filter(isOnLink)
    if (!isKept) this.flights = this.flights.filter((one) => !isOnLink(one))
    for (const message of due) this.#deliver(message)
  }

  /** Delivers a message that no node sent; the trace shows it like any other message. */
  say(message: Message, store?: number): void {
    if (this.isTracing) this.events.push(describeMessage(message))
    this.receive(message, store)
  }

  /** Delivers a snapshot of the applied state of `from` to `to`. */
  deliverSnapshot(from: NodeId, to: NodeId): void {
    const { position, configuration } = this.snapshotOf(from)
    const { term } = this.core(from).status
    this.receive({ type: 'snapshot', from, to, term, position, configuration })
    this.step(from, { type: 'snapshotSent', to })
  }

  snapshotOf(id: NodeId): { readonly position: Position; readonly configuration: Uint8Array } {
    const last = requirePresent(this.appliedBy(id).at(-1), `${id} has applied something`)
    const changes = this.appliedBy(id).filter((entry) => entry.type === 'configuration')
    const start = toBinary(ConfigurationSchema, configurationOf(this.#list))
    const configuration = changes.at(-1)?.data ?? start
    return { position: { term: last.term, index: last.index }, configuration }
  }

  #deliver(message: Message): void {
    if (!this.isRunning(message.to)) return
    if (this.isTracing) this.events.push(describeMessage(message))
    this.receive(message)
  }

  #syncAll(id: NodeId): void {
    const node = this.#node(id)
    while (!node.isDiskHeld && node.life !== null) {
      const sync = node.life.syncs.shift()
      if (sync === undefined) return
      sync()
    }
  }

  #pump(node: ScriptNode): void {
    const life = this.#life(node.id)
    for (const outgoing of life.gated.splice(0)) this.#send(life, outgoing)
    for (let effects = life.core.takeEffects(); effects !== null;) {
      this.#carryOut(node, life, effects)
      effects = life.core.takeEffects()
    }
  }

  #send(life: Life, outgoing: OutgoingMessage): void {
    const { message, afterToken } = outgoing
    if (afterToken > life.durableToken) life.gated.push(outgoing)
    else if (!this.#cuts.has(`${message.from}>${message.to}`)) this.flights.push(message)
  }

  #carryOut(node: ScriptNode, life: Life, effects: CoreEffects): void {
    for (const outgoing of effects.messages) this.#send(life, outgoing)
    for (const operation of effects.disk) {
      if (operation.type === 'write') life.disk.write(operation.write)
      if (operation.type === 'reset') life.disk.reset(operation.position, operation.token)
      if (operation.type === 'compact') life.disk.compact(operation.position)
      if (operation.type === 'settle') life.disk.settle(operation.owed)
      if (operation.type !== 'restore') continue
      node.applied = operation.position
      this.events.push(`${node.id} takes over the snapshot of ${place(operation.position)}`)
    }
    for (const result of effects.proposals) {
      const outcome = result.ok ? `accepts ${place(result)}` : `refuses ${result.code}`
      this.events.push(`${node.id} ${outcome}`)
    }
    for (const result of effects.reads) {
      const outcome = result.ok ? `reads at ${result.index}` : `refuses the read ${result.code}`
      this.events.push(`${node.id} ${outcome}`)
    }
    for (const to of effects.sendSnapshots)
      this.events.push(`${node.id} has to send ${to} a snapshot`)
    if (effects.committed.length === 0) return
    const applied = this.#applied.get(node.id) ?? []
    applied.push(...effects.committed)
    this.#applied.set(node.id, applied)
    const last = requirePresent(effects.committed.at(-1), 'something was committed')
    node.applied = { term: last.term, index: last.index }
    node.appliedTimeMs = last.timeMs
    if (!node.isApplyHeld) this.#reportApplied(node, life)
  }

  #reportApplied({ applied, appliedTimeMs: timeMs }: ScriptNode, { core }: Life): void {
    core.step({ type: 'applied', index: applied.index, timeMs })
  }

  #node(id: NodeId): ScriptNode {
    return requirePresent(this.#nodes.get(id), `there is a node ${id}`)
  }

  #life(id: NodeId): Life {
    return requirePresent(this.#node(id).life, `node ${id} runs`)
  }
}

/**
 * Timestamps of the entries after the initial entries, relative to the start time of all clocks.
 */
export function describeStamps(cluster: ScriptCluster, id: NodeId): string {
  const { base, last } = cluster.core(id).fullStatus
  const entries = cluster.core(id).entries(Math.max(base.index, 2) + 1, last.index)
  const stamps = entries.map((entry) => {
    const aheadMs = entry.timeMs - NOW_MS
    const stamp = entry.timeMs === FORMED_MS ? 'as formed' : `${aheadMs < 0 ? '' : '+'}${aheadMs}`
    return `${place(entry)} ${stamp}`
  })
  return `${id} has stamped ${stamps.join(', ')}`
}

/** The disk state that a node reports to its peers, so that they notice an older copy later. */
export function describeDisk(cluster: ScriptCluster, id: NodeId): string {
  const { onDisk, isOnDiskWhole } = cluster.core(id).fullStatus
  const doubt = isOnDiskWhole ? '' : ', or less than was promised'
  return `${id} has on disk term=${onDisk.term} last=${place(onDisk.last)}${doubt}`
}

export function describePeers(cluster: ScriptCluster, id: NodeId): readonly string[] {
  return cluster.core(id).fullStatus.peers.map((peer) => {
    const { matchIndex, nextIndex, state } = peer
    return `${id} knows of ${peer.id}: match=${matchIndex} next=${nextIndex} ${state}`
  })
}

export const place = (position: Position): string => `${position.term}/${position.index}`

export function describeEntry(entry: Entry): string {
  if (entry.type !== 'configuration') {
    return `${place(entry)} "${new TextDecoder().decode(entry.data)}"`
  }
  const configuration = configurationFromRecord(fromBinary(ConfigurationSchema, entry.data))
  return `${place(entry)} {${describeConfiguration(configuration)}}`
}

function describeConfiguration(configuration: Configuration): string {
  const { voters, outgoingVoters, learners } = configuration
  const parts = [`voters=${voters.join(',')}`]
  if (outgoingVoters.length > 0) parts.push(`outgoing=${outgoingVoters.join(',')}`)
  if (learners.length > 0) parts.push(`learners=${learners.join(',')}`)
  return parts.join(' ')
}

/** State of a node as text, without the initial entries, which all nodes have. */
export function describeNode(cluster: ScriptCluster, id: NodeId): string {
  if (!cluster.isRunning(id)) return `${id} down`
  const { role, term, commit, applied, base, last, owed } = cluster.core(id).fullStatus
  const from = Math.max(base.index, Math.min(2, last.index))
  const log = cluster
    .core(id)
    .entries(from + 1, last.index)
    .map(describeEntry)
  const start = from > 2 ? [`…${place(base)}`] : []
  const text = [...start, ...log].join(' ')
  const inForce = describeConfiguration(cluster.core(id).status.configuration)
  const changed = inForce === cluster.startsWith ? '' : ` in force {${inForce}}`
  return `${id} ${role.padEnd(12)} term=${term} commit=${commit} applied=${applied} log=[${text}]${changed}${debt(owed)}`
}

function debt(owed: Position | null): string {
  if (owed === null) return ''
  return owed.index === Number.MAX_SAFE_INTEGER ? ` owes=${owed.term}/*` : ` owes=${place(owed)}`
}

export function describeMessage(message: Message): string {
  const { from, to, term, type } = message
  return `${from}>${to} ${type} term=${term}${describeBody(message)}`
}

function attested(message: Extract<Message, { readonly type: 'heartbeatRequest' }>): string {
  const { attested: said } = message
  return said === undefined ? '' : ` ends at ${said.lastIndex} after start ${said.boot}`
}

function describeBody(message: Message): string {
  switch (message.type) {
    case 'voteRequest':
      return ` last=${place(message.last)}${message.pre ? ' pre' : ''}${message.transfer ? ' transfer' : ''}`
    case 'voteResponse':
      return `${message.granted ? ' granted' : ' refused'}${message.pre ? ' pre' : ''}`
    case 'appendRequest': {
      const entries = message.entries.map(describeEntry).join(' ')
      return ` previous=${place(message.previous)} commit=${message.commit} entries=[${entries}]`
    }
    case 'appendResponse':
      return message.success
        ? ` match=${message.matchIndex}`
        : ` refused=${message.rejectedIndex} hint=${place(message.hint)}${message.hasLost === true ? ' lost' : ''}`
    case 'heartbeatRequest':
      return ` commit=${message.commit} read=${message.readSequence}${attested(message)}`
    case 'heartbeatResponse':
      return ` read=${message.readSequence}${message.owingBoot === undefined ? '' : ` owing in start ${message.owingBoot}`}`
    case 'commitNotice':
      return ` commit=${message.commit}`
    case 'timeoutNow':
      return ''
    case 'snapshot':
      return ` position=${place(message.position)}`
  }
}
