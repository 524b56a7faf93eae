import { create } from '@bufbuild/protobuf'
import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import type { SnapshotChunk } from '../../proto/gen/mesh_pb.ts'
import type { Alarm } from '../../src/cluster/alarm-table.ts'
import type { ConsensusThreadEvent, ClusterRefusal } from '../../src/cluster/thread-channel.ts'
import { assert } from '../../src/lib/assert.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { type Random, seededRandom } from '../../src/lib/random.ts'
import type { AppliedEntry } from '../../src/ports/replicated-state-machine.ts'
import { encodeConfiguration } from '../../src/raft/configuration.ts'
import type { FullCoreStatus } from '../../src/raft/core.ts'
import type { DiskWrite, Entry, Index, Message, NodeId, Term } from '../../src/raft/types.ts'
import { Announcements } from '../raft/announcements.ts'
import { Asker } from './asker.ts'
import { CircuitWorld } from './circuits/circuit-world.ts'
import { Clients, formingCommands, REGISTERS } from './clients.ts'
import { Controller, type ControllerWorld, isPowerCut, type Life, storeIdOf } from './controller.ts'
import { type Held, Invariants } from './invariants.ts'
import type { TestCertificates } from './test-certificates.ts'
import { Misfortunes } from './misfortunes.ts'
import { Network } from './network.ts'
import { Operator } from './operator.ts'
import type { Load, Plan } from './plan.ts'
import { RecordsModel } from './records-model.ts'
import { Restorers } from './restorers.ts'
import type { SimulatedMesh } from './simulated-mesh.ts'
import { Stability } from './stability.ts'
import { Tally } from './tally.ts'
import { TraceHash } from './trace-hash.ts'
import type { Context, VirtualLoop } from './virtual-loop.ts'

const START_MS = 1_700_000_000_000
const STEPS_MIN = 5_000
const REST_MS = 1_000
const LAST_FAILURES_MS = 3_000
const CLOSE_ENTRIES = 50
/** Maximum time until a cluster without faults is quiet, while it still makes progress. */
const SETTLE_MS_MAX = 60_000
/** Chunks of the largest state in a run; each may take `chunkMsMax`. */
const CHUNKS_MAX = 4_000
const STANDSTILL_MS = 12_000
/**
 * Maximum time of a write through any controller after the faults: far below the proposal timeout.
 */
const ANSWER_MS_MAX = 2_500

export interface Finished {
  readonly steps: number
  readonly trace: string
  readonly counts: Readonly<Record<string, number>>
  readonly acknowledged: number
  readonly virtualMs: number
  /**
   * Real time spent in the invariants and in the whole run, in runs that measure it; otherwise 0.
   */
  readonly checkMs: number
  readonly checkedMs: number
}

/**
 * A whole cluster of controllers in one thread and in virtual time. Production parts run unchanged.
 * One plan determines every delay, loss, crash, damage and request, so that a run can be repeated
 * step by step.
 */
export class World implements ControllerWorld {
  readonly plan: Plan
  readonly keyring: TestCertificates
  readonly loop: VirtualLoop
  readonly chance: Random
  readonly tally: Tally
  readonly records = new RecordsModel()
  readonly asker: Asker
  readonly restorers: Restorers
  readonly trace: TraceHash
  readonly network: Network
  readonly controllers = new Map<NodeId, Controller>()
  readonly invariants: Invariants
  readonly isWired: boolean
  /** Null: no routers. */
  readonly circuits: CircuitWorld | null
  isServing = true
  isHealed = false
  readonly #operator: Operator
  readonly #clients: Clients
  readonly #misfortunes: Misfortunes
  readonly #stability: Stability
  readonly #announcements = new Announcements()
  readonly #byContext = new Map<Context, Controller>()
  /**
   * Lost disks, by name: the entries that they acknowledged were durable when the acknowledgments
   * were counted.
   */
  readonly #graves = new Map<NodeId, Held>()
  readonly #clockJumps = new Map<NodeId, number>()
  /** Whether this run is timed; one in sixteen, because reading the clock costs time. */
  readonly #isTimed: boolean
  readonly #beganMs = performance.now()
  #checkMs = 0
  #chunks = 0
  #nextStore = 0
  #failure: Error | null = null

  constructor(
    plan: Plan,
    keyring: TestCertificates,
    loop: VirtualLoop,
    print: (line: string) => void = () => undefined,
  ) {
    this.plan = plan
    this.tally = new Tally(plan.circuits === null ? 'cluster' : 'circuits')
    this.keyring = keyring
    this.loop = loop
    this.asker = new Asker(loop)
    this.restorers = new Restorers(this)
    this.chance = seededRandom(plan.seed ^ 0x5eed)
    this.trace = new TraceHash(print)
    this.network = new Network(this.chance, plan.rates, this.tally, () => loop.nowMs)
    this.isWired = plan.isWired
    this.#isTimed = plan.seed % 16 === 0
    this.invariants = new Invariants(
      this.tally,
      () => this.#platters(),
      () => this.loop.nowMs,
    )
    loop.onEvent = (context) => this.#afterEvent(context)
    loop.onError = (error, context) => this.#onError(error, context)
    this.#form()
    this.#operator = new Operator(this)
    this.#misfortunes = new Misfortunes(this, this.#operator)
    this.#stability = new Stability(this)
    this.#clients = new Clients(this)
    this.circuits = plan.circuits === null ? null : new CircuitWorld(this, plan.circuits, plan.seed)
    for (const controller of this.controllers.values()) controller.start()
  }

  get load(): Load {
    return this.plan.load
  }

  get steps(): number {
    return this.loop.steps
  }

  /** Runs the plan, then stops all faults and requires the cluster to serve and to become quiet. */
  async run(): Promise<Finished> {
    await this.#runUntil(this.plan.faultyMs, this.plan.faultySteps)
    this.heal()
    await this.#serveAgain()
    this.isServing = false
    await this.#comeToRest()
    await this.circuits?.settle()
    await this.loop.comeRound()
    if (this.#failure !== null) throw this.#failure
    for (const controller of this.running()) {
      this.#clients.assertKept(controller)
      this.restorers.assertRecords(controller, controller.applied)
    }
    return {
      steps: this.steps,
      trace: this.trace.hex,
      counts: this.tally.counts,
      acknowledged: this.#clients.acknowledged,
      virtualMs: this.loop.nowMs,
      checkMs: this.#checkMs,
      checkedMs: this.#isTimed ? performance.now() - this.#beganMs : 0,
    }
  }

  /** Ends all processes and clients. */
  end(): void {
    for (const controller of this.controllers.values()) controller.crash()
  }

  /** Fails the run with an error that no caller handles. */
  fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error))
  }

  heal(): void {
    this.isHealed = true
    this.network.isHealed = true
    this.network.mend()
    this.circuits?.heal()
    this.trace.add(this.loop.nowMs, 'heal')
    for (const controller of this.controllers.values()) {
      controller.files.bytesLeft = Number.MAX_SAFE_INTEGER
      controller.files.isUnreadable = false
      controller.files.failsNextSync = false
      controller.files.callsLeft = Infinity
      // A recent failure may not have reached the process yet.
      this.loop.after(LAST_FAILURES_MS, () => {
        controller.mayFail = false
      })
      if (!controller.isRunning && !controller.isStarting) this.start(controller)
    }
  }

  // Queries.

  running(): readonly Controller[] {
    return [...this.controllers.values()].filter(({ isRunning }) => isRunning)
  }

  leader(): Controller | null {
    let found: Controller | null = null
    let term = -1
    for (const controller of this.controllers.values()) {
      const status = controller.core?.status
      if (status?.role !== 'leader' || status.term <= term) continue
      found = controller
      term = status.term
    }
    return found
  }

  /**
   * After the faults, operators stop writing as long as the alarm SNAPSHOT_LAGGING is active. If
   * the log outgrows its retention before a snapshot is installed, as with small limits and slow
   * disks, snapshots would repeat forever.
   */
  get isAskedToWriteLess(): boolean {
    return this.isHealed && this.#outrun !== null
  }

  /** The leader's alarm about a member that receives snapshot after snapshot. */
  get #outrun(): Alarm | null {
    const alarms = this.leader()?.life?.clusterNode.alarms.list() ?? []
    return alarms.find(({ code }) => code === 'SNAPSHOT_LAGGING') ?? null
  }

  async runUntil(untilMs: number): Promise<void> {
    await this.#runUntil(untilMs)
  }

  random(): number {
    return this.chance.next()
  }

  meshOf(id: NodeId): SimulatedMesh | null {
    return this.controllers.get(id)?.life?.mesh ?? null
  }

  leafOf(id: NodeId): Uint8Array {
    return this.keyring.of(id).leafDer
  }

  clockOf(id: NodeId): Clock {
    const at = Number(id.slice(1))
    const offsetMs = this.plan.clockOffsetsMs[at] ?? 0
    if (Math.abs(offsetMs) > 1_000) this.tally.note('clock skew')
    return {
      nowMs: () => START_MS + this.loop.nowMs + offsetMs + (this.#clockJumps.get(id) ?? 0),
      monotonicMs: () => this.loop.nowMs,
    }
  }

  jumpClock(id: NodeId, byMs: number): void {
    this.#clockJumps.set(id, (this.#clockJumps.get(id) ?? 0) + byMs)
  }

  syncMs(id: NodeId): number {
    const { rates } = this.plan
    const { chance } = this
    if (!this.isHealed) {
      const slowMs = this.#misfortunes.slowSyncMs(id)
      if (slowMs > 0) return slowMs
      if (chance.next() < rates.slowDiskChance) {
        this.tally.note('disk slow')
        return chance.integer(200, 2_000)
      }
    }
    return chance.integer(0, rates.syncMsMax)
  }

  tamper(chunk: SnapshotChunk): SnapshotChunk {
    this.#chunks += 1
    return this.#misfortunes.tamper(chunk)
  }

  /**
   * Whether the newest committed configuration lists this disk.
   * @param atMs virtual time of the configuration; by default the current one.
   */
  isListed(controller: Controller, atMs = Infinity): boolean {
    return this.invariants
      .membersAt(atMs)
      .some(
        ({ id, storeId }) =>
          id === controller.id && Buffer.compare(storeId, storeIdOf(controller.store)) === 0,
      )
  }

  storeMs(): number {
    return this.chance.integer(0, this.plan.rates.storeMsMax)
  }

  applyMs(): number {
    const { applyMsMax } = this.plan.rates
    return this.isHealed || applyMsMax === 0 ? 0 : this.chance.next() * applyMsMax
  }

  install(id: NodeId): Controller {
    this.#nextStore += 1
    const controller = new Controller(this, id, this.#nextStore)
    this.controllers.set(id, controller)
    return controller
  }

  /** Switches off the machine of a controller and discards its disk. */
  retire(controller: Controller): void {
    this.trace.add(this.loop.nowMs, controller.id, 'retired')
    this.stop(controller)
    this.#bury(controller)
    this.controllers.delete(controller.id)
  }

  /** Replaces a controller's disk by an empty one or an old copy. */
  replaceDisk(controller: Controller): Controller {
    this.stop(controller)
    this.#bury(controller)
    const again = this.install(controller.id)
    again.roster = controller.roster
    return again
  }

  /**
   * The disk of a controller no longer contains its promises: entries that it acknowledged before
   * may still be counted.
   */
  losePromises(controller: Controller): void {
    this.#bury(controller)
    controller.forgetPromises()
  }

  start(controller: Controller): void {
    if (this.controllers.get(controller.id) !== controller) return
    if (controller.isRunning || controller.isStarting) return
    this.trace.add(this.loop.nowMs, controller.id, 'start', controller.platter.lastIndex)
    controller.start()
  }

  /** Ends the process without notice. */
  stop(controller: Controller): void {
    const { life } = controller
    controller.crash()
    this.circuits?.onStopped(controller)
    if (life !== null) {
      for (const context of Object.values(life.threads)) this.#byContext.delete(context)
      this.asker.onOver(life)
    }
  }

  startAfter(controller: Controller, delayMs: number): void {
    this.loop.after(delayMs, () => {
      this.start(controller)
    })
  }

  // Notifications from controllers.

  onOwing({ id }: Controller): void {
    this.invariants.forgetful.add(id)
  }

  onStarted(controller: Controller): void {
    const { life } = controller
    assert(life !== null, 'it has started')
    for (const context of Object.values(life.threads)) this.#byContext.set(context, controller)
    this.invariants.onRestart(this.#watched(controller, life))
    this.circuits?.onStarted(controller)
    this.trace.add(this.loop.nowMs, controller.id, 'started')
  }

  onDown(controller: Controller, error: Error): void {
    this.trace.add(this.loop.nowMs, controller.id, 'down')
    this.#misfortunes.onDown(controller, error)
  }

  onSelfRefused(controller: Controller, refusal: ClusterRefusal): void {
    this.loop.after(0, () => {
      if (this.controllers.get(controller.id) !== controller) return
      this.#misfortunes.onSelfRefused(controller, refusal)
    })
  }

  onHostEvent(_controller: Controller, event: ConsensusThreadEvent): void {
    if (event.type === 'refused' && event.code === 'OVERLOADED') {
      this.tally.note('proposal refused at a cap')
    } else if (event.type === 'snapshotWanted') this.tally.note('snapshot sent')
    else if (event.type === 'log' && /^snapshot to .* paused at chunk [1-9]/.test(event.message)) {
      this.tally.note('snapshot resumed')
    }
  }

  onWrite(controller: Controller, write: DiskWrite): void {
    const first = write.entries[0]
    if (first === undefined) return
    const last = write.entries.at(-1)
    this.trace.add(this.loop.nowMs, controller.id, 'write', first.index, last?.index, last?.term)
    const previousTerm = controller.core?.termAt(first.index - 1) ?? null
    this.invariants.onWrite(controller, write.entries, previousTerm)
  }

  onApplied(controller: Controller, entry: Entry, applied: AppliedEntry): void {
    this.trace.add(this.loop.nowMs, controller.id, 'apply', entry.index, entry.term)
    this.invariants.onApply(controller.id, entry)
    this.#clients.onApplied(controller, entry, applied)
    this.restorers.onApplied(controller, entry, applied)
    if (entry.index % 8 !== 0 || controller.life === null) return
    const { index, state } = controller.life.machine.digests()
    this.invariants.onDigest(controller.id, index, state)
  }

  onRestored(controller: Controller, isInMidApply: boolean): void {
    this.trace.add(this.loop.nowMs, controller.id, 'restored', controller.applied)
    this.tally.note('snapshot installed')
    if (isInMidApply) this.tally.note('snapshot installed in mid-apply')
    if (controller.life === null) return
    const { index, state } = controller.life.machine.digests()
    this.invariants.onDigest(controller.id, index, state)
  }

  onSend(from: SimulatedMesh, message: Message): void {
    const controller = this.controllers.get(from.id)
    const { life } = controller ?? {}
    if (controller === undefined || life === undefined || life === null) return
    const watched = this.#watched(controller, life)
    this.invariants.onSend(watched, message)
    this.#announcements.onSend(watched, message)
  }

  onDeliver(to: SimulatedMesh, from: NodeId, message: Message): void {
    this.trace.add(this.loop.nowMs, from, to.id, message.type, message.term)
  }

  // Internals.

  #form(): void {
    const { voters, learners } = this.plan
    const ids = Array.from({ length: voters + learners }, (_, at) => `n${at + 1}`)
    const members = ids.map((id, at) =>
      create(MemberSchema, {
        id,
        voter: at < voters,
        address: `${id}:1`,
        storeId: storeIdOf(at + 1),
        publicKeySha256: this.keyring.of(id).publicKeySha256,
      }),
    )
    const record = create(ConfigurationSchema, { members })
    const isRestored = this.plan.events.some(({ what }) => what.type === 'restore')
    const forming = formingCommands(isRestored).map((data): Pick<Entry, 'type' | 'data'> => ({
      type: 'command',
      data,
    }))
    const first = { type: 'configuration' as const, data: encodeConfiguration(record) }
    const entries = [first, ...forming].map((part, at): Entry => ({
      index: at + 1,
      term: 1,
      timeMs: START_MS - 4_000_000,
      ...part,
    }))
    this.invariants.seedHistory(entries)
    for (const [at, id] of REGISTERS.entries()) {
      this.records.formed(entries.length - REGISTERS.length + at + 1, id)
    }
    for (const [at, id] of ids.entries()) {
      const controller = new Controller(this, id, at + 1)
      this.controllers.set(id, controller)
      controller.form(entries)
    }
    this.#nextStore = ids.length
  }

  async #runUntil(untilMs: number, stepsMax = Infinity): Promise<void> {
    const isOver = (): boolean => this.#failure !== null || this.steps >= stepsMax
    await this.loop.runUntil(untilMs, isOver)
    if (this.#failure !== null) throw this.#failure
  }

  #onError(error: unknown, context: Context | null): void {
    const controller = context === null ? undefined : this.#byContext.get(context)
    // A power cut occurred during the event; it is handled after the event.
    if (isPowerCut(error) && controller !== undefined) return
    this.fail(error)
  }

  #afterEvent(context: Context): void {
    const controller = this.#byContext.get(context)
    const { life } = controller ?? {}
    if (controller === undefined || life === undefined || life === null) return
    const beganMs = this.#isTimed ? performance.now() : 0
    try {
      if (controller.isCut) {
        this.#misfortunes.onPowerCut(controller)
        return
      }
      controller.settle(context)
      if (context === life.threads.wal) return
      const status = this.invariants.afterStep(this.#watched(controller, life))
      this.#noteRepaired(controller, status)
      this.#stability.look(controller, status)
      if (this.loop.steps % 16 === 0) {
        const watched = this.#watched(controller, life)
        this.#announcements.greet(watched, controller.applied)
        if (this.loop.steps % 64 === 0) this.invariants.assertConfigurations(watched)
      }
      this.#assertBounds(status)
    } catch (error) {
      this.fail(error)
    }
    if (this.#isTimed) this.#checkMs += performance.now() - beganMs
  }

  #noteRepaired({ platter }: Controller, { owed }: FullCoreStatus): void {
    if (platter.owed !== null && owed === null) this.tally.note('repair done')
    platter.owed = owed
    if (platter.isDamaged && owed === null && !this.#misfortunes.isOld(platter)) {
      platter.isDamaged = false
    }
  }

  #watched(
    controller: Controller,
    life: Life,
  ): { id: NodeId; store: number; platter: Controller['platter']; core: Life['core'] } {
    return {
      id: controller.id,
      store: controller.store,
      platter: controller.platter,
      core: life.core,
    }
  }

  /** I17: the bounds of a leader. */
  #assertBounds({ uncommittedBytes, peers }: FullCoreStatus): void {
    const entryMax = 8 * 1_024
    const { uncommittedBytesMax, windowBytesMax, appendBytesMax } = this.plan.core
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

  #bury(controller: Controller): void {
    const { platter } = controller
    const before = this.#graves.get(controller.id)
    const holds = (index: Index, term: Term): boolean =>
      platter.holds(index, term) || before?.holds(index, term) === true
    this.#graves.set(controller.id, { holds })
  }

  /**
   * For each name, the entries that count: those of the current disk, and those of lost disks,
   * because the lost disks had acknowledged them.
   */
  #platters(): ReadonlyMap<NodeId, Held> {
    const platters = new Map<NodeId, Held>(this.#graves)
    for (const [id, { platter }] of this.controllers) {
      const grave = this.#graves.get(id)
      const holds = (index: Index, term: Term): boolean =>
        platter.holds(index, term) || grave?.holds(index, term) === true
      platters.set(id, { holds })
    }
    return platters
  }

  /** I18: every controller soon answers a write. */
  async #serveAgain(): Promise<void> {
    await this.#waitFor('a leader that everybody follows', () => this.#unrest(false))
    const asked = this.running().filter((controller) => this.isListed(controller))
    const answered = this.#clients.probe(asked)
    let answerMsMax = ANSWER_MS_MAX + this.#catchUpMsMax(asked)
    const fromMs = this.loop.nowMs
    let needsSnapshot = false
    // A controller that is removed in the meantime need not answer.
    const owing = (): readonly Controller[] =>
      asked.filter((one) => !answered.has(one) && one.isRunning && this.isListed(one))
    while (owing().length > 0 && this.loop.nowMs < fromMs + answerMsMax) {
      await this.#runUntil(this.loop.nowMs + 50)
      // A leader that is the only voter may compact entries that a learner lacks.
      if (needsSnapshot || !this.#isSendingSnapshot(owing())) continue
      needsSnapshot = true
      answerMsMax += this.plan.rates.chunkMsMax * CHUNKS_MAX
    }
    const silent = owing()
    assert(
      silent.length === 0,
      `liveness: no write through ${silent.map(({ id }) => id).join()} was answered within ${answerMsMax} ms`,
    )
    while (this.steps < STEPS_MIN) await this.#runUntil(this.loop.nowMs + REST_MS)
  }

  #isSendingSnapshot(to: readonly Controller[]): boolean {
    const peers = this.leader()?.core?.fullStatus.peers ?? []
    return peers.some(({ id, state }) => state === 'snapshot' && to.some((one) => one.id === id))
  }

  /**
   * Maximum time until the slowest store lets its controller apply its backlog. A controller has
   * caught up when it lacks at most 50 entries. A controller with a small write buffer applies
   * entries at the rate of its store.
   */
  #catchUpMsMax(asked: readonly Controller[]): number {
    const last = this.leader()?.core?.fullStatus.last.index ?? 0
    const behind = Math.max(0, ...asked.map(({ applied }) => last - applied))
    return behind * this.plan.rates.storeMsMax
  }

  async #comeToRest(): Promise<void> {
    await this.#waitFor('the cluster at rest', () => this.#unrest(true))
    const leader = this.leader()
    const { index, state } = leader?.life?.machine.digests() ?? { index: 0, state: '' }
    for (const controller of this.running()) {
      const own = controller.life?.machine.digests()
      if (own?.index === index) this.invariants.onDigest(controller.id, index, own.state)
    }
    this.invariants.onDigest('leader', index, state)
    assert(this.#openOperations === 0, 'liveness: a request was never answered')
  }

  async #waitFor(what: string, lack: () => string | null): Promise<void> {
    const beganMs = this.loop.nowMs
    let progress = -1
    let progressMs = this.loop.nowMs
    for (;;) {
      const missing = lack()
      if (missing === null) return
      const now = this.#progress()
      if (now > progress) {
        progress = now
        progressMs = this.loop.nowMs
      }
      const isStuck = this.loop.nowMs - progressMs > STANDSTILL_MS
      const settleMsMax = SETTLE_MS_MAX + this.plan.rates.chunkMsMax * CHUNKS_MAX
      assert(
        !isStuck && this.loop.nowMs - beganMs < settleMsMax,
        `liveness: ${what} is not reached: ${missing}`,
      )
      await this.#runUntil(this.loop.nowMs + 100)
    }
  }

  get #openOperations(): number {
    return this.#clients.openOperations + this.restorers.open
  }

  /** Grows while any controller makes progress. */
  #progress(): number {
    let sum = this.#chunks
    for (const controller of this.controllers.values()) sum += controller.applied
    return sum
  }

  /** null when all controllers agree and, with `isResting`, have no pending work. */
  #unrest(isResting: boolean): string | null {
    const leader = this.leader()
    const status = leader?.core?.fullStatus
    if (leader === null || status === undefined) return 'no leader'
    const { configuration, commit, last, isConfigurationCommitted, transferTarget } = status
    for (const id of [...configuration.voters, ...configuration.learners]) {
      const controller = this.controllers.get(id)
      const core = controller?.core
      if (controller === undefined || core === undefined) return `${id} is down`
      if (core.status.leader !== leader.id) {
        return `${id} is ${core.status.role} of ${core.status.leader} in term ${core.status.term}, not of ${leader.id} in ${status.term}`
      }
      if (controller.isPaused(this.loop.nowMs)) return `${id} stands still`
      // The ends of a broken connection may regard it as intact for one keepalive interval.
      for (const other of this.running()) {
        const isLinked = controller === other || controller.life?.mesh.hasLinkTo(other.id) === true
        if (this.isListed(other) && !isLinked) return `${id} has no link to ${other.id}`
      }
      // Clients continue to write, unless an alarm asks them to stop; the controller must catch up
      // anyway.
      const { applied } = controller
      if (applied < commit - CLOSE_ENTRIES) return `${id} applied ${applied} of ${commit}`
      const peer = status.peers.find((one) => one.id === id)
      if (peer?.state === 'snapshot') return `${id} is sent a snapshot`
      // The leader does not know the peer's position yet: its log may no longer contain the entries
      // that the peer lacks.
      if (peer?.state === 'probe') return `${id} is not known to follow`
    }
    if (this.#operator.hasWishes) return 'members are being changed'
    // A restore may end a leader's process while parts are staged.
    if (this.restorers.open > 0) return 'a restore is under way'
    if (transferTarget !== null) return 'leadership is being handed over'
    if (configuration.outgoingVoters.length > 0) return 'a joint configuration was not left'
    if (this.#misfortunes.unrepaired !== null) return this.#misfortunes.unrepaired
    if (!isResting) return null
    if (!isConfigurationCommitted || commit !== last.index) return 'entries are not committed'
    for (const id of [...configuration.voters, ...configuration.learners]) {
      const { applied } = this.controllers.get(id) ?? {}
      if (applied !== commit) return `${id} applied ${applied} of ${commit}`
    }
    const waiting = status.configurationRecord.members.find(
      ({ voter, promote }) => promote && !voter,
    )
    if (waiting !== undefined) return `${waiting.id} was not promoted`
    if (this.#openOperations > 0) return 'requests are not answered'
    // All controllers have caught up, so an alarm that stayed active would block writes forever.
    return this.#outrun?.text ?? null
  }
}
