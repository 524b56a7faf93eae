import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Clock } from '../lib/clock.ts'
import type { RaftCore, FullCoreStatus } from './core.ts'
import type {
  DiskOperation,
  CoreEffects,
  OutgoingMessage,
  ProposalResult,
  ReadResult,
} from './effects.ts'
import { entryBytes } from './log.ts'
import type { CoreInput, Proposal } from './input.ts'
import type { Disk, Index, Message, NodeId, Position, Transport } from './types.ts'
import type { RaftNodeLimits, Scheduler, RaftNodeCallbacks, RaftNodeStart } from './node-start.ts'
import { TickTimer } from './tick-timer.ts'

export const systemScheduler: Scheduler = {
  soon: (task) => {
    setImmediate(task)
  },
  after: (delayMs, task) => {
    const timer = setTimeout(task, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

interface TransferWait {
  readonly term: number
  readonly resolve: (isDone: boolean) => void
}

/**
 * Connects one {@link RaftCore} with a disk, peers and a state machine. In this folder, only this
 * file does asynchronous work. One turn at a time passes all pending inputs to the Raft core, so
 * that they share one write and one round of messages. The node sends a message that depends on a
 * write only after the disk has reported that write as durable. No turn waits for the disk, a peer
 * or the state machine.
 */
export class RaftNode {
  readonly #core: RaftCore
  readonly #disk: Disk
  readonly #transport: Transport
  readonly #clock: Clock
  readonly #scheduler: Scheduler
  readonly #limits: RaftNodeLimits
  readonly #callbacks: RaftNodeCallbacks

  #isRunning = false
  #isTurnPlanned = false
  readonly #ticks: TickTimer
  #inbox: CoreInput[] = []
  #inboxMessages = 0
  #inboxBytes = 0
  #proposals: Proposal[] = []
  #refusedProposals: ProposalResult[] = []
  #durableToken = 0
  #gated: OutgoingMessage[] = []
  /** Disk operations that wait until the current restore ends. */
  #diskBacklog: DiskOperation[] = []
  #isRestoring = false
  #reads = new Map<number, (result: ReadResult) => void>()
  #changes = new Map<number, (result: ProposalResult) => void>()
  #transfers: TransferWait[] = []
  /**
   * Ids for the node's own requests: -1, -2 and so on, so that they never equal proposal ids of the
   * caller (>= 0).
   */
  #nextOwnId = -1

  constructor(start: RaftNodeStart) {
    this.#core = start.core
    this.#disk = start.disk
    this.#transport = start.transport
    this.#clock = start.clock
    this.#scheduler = start.scheduler
    this.#limits = start.limits
    this.#callbacks = start.callbacks
    this.#ticks = new TickTimer({
      tickMs: start.limits.tickMs,
      clock: start.clock,
      scheduler: start.scheduler,
      onDue: () => this.#plan(),
    })
  }

  start(): void {
    this.#isRunning = true
    this.#disk.onDurable = (token) => {
      this.#submit({ type: 'persisted', token })
    }
    this.#disk.onFailed = (error) => {
      this.#fail(error)
    }
    this.#ticks.start()
    this.#plan()
  }

  /**
   * Stops immediately. Call transferLeadership before, so that the cluster is not left without a
   * leader. The caller closes the disk.
   */
  stop(): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    this.#ticks.stop()
    for (const [id, resolve] of this.#reads) resolve({ id, ok: false, code: 'NOT_LEADER' })
    for (const [id, resolve] of this.#changes) resolve({ id, ok: false, code: 'NOT_LEADER' })
    for (const { resolve } of this.#transfers) resolve(false)
    this.#reads.clear()
    this.#changes.clear()
    this.#transfers = []
  }

  /**
   * Receives a message from the mesh. `message.from` is the authenticated peer and `storeId` the id
   * of its authenticated disk (absent where disks are not distinguished). When the inbox is full,
   * the node drops the message.
   */
  receive(message: Message, storeId?: Uint8Array): void {
    const bytes = messageBytes(message)
    const { inboxMessagesMax, inboxBytesMax } = this.#limits
    if (this.#inboxMessages >= inboxMessagesMax || this.#inboxBytes + bytes > inboxBytesMax) return
    this.#inboxMessages += 1
    this.#inboxBytes += bytes
    const nowMs = this.#clock.nowMs()
    this.#submit({ type: 'message', message, ...(storeId === undefined ? {} : { storeId }), nowMs })
  }

  /**
   * The caller chooses the proposal ids, >= 0. The node reports each result once through
   * onProposals, in a later turn, unless the node stops.
   */
  propose(proposals: readonly Proposal[]): void {
    for (const proposal of proposals) {
      if (this.#proposals.length < this.#limits.inboxProposalsMax) this.#proposals.push(proposal)
      else this.#refusedProposals.push({ id: proposal.id, ok: false, code: 'OVERLOADED' })
    }
    this.#plan()
  }

  /**
   * Resolves with an index: a read is linearizable once this node has applied that index. Refused
   * when this node is not the leader or loses leadership, or when too many reads wait.
   */
  readIndex(): Promise<ReadResult> {
    const id = this.#takeOwnId()
    if (!this.#isRunning) return Promise.resolve({ id, ok: false, code: 'NOT_LEADER' })
    return new Promise((resolve) => {
      this.#reads.set(id, resolve)
      this.#submit({ type: 'read', id })
    })
  }

  /**
   * Resolves once the joint configuration is logged or refused. The change is complete when
   * onStatus reports a committed configuration that is not joint and has a higher index than the
   * result.
   * @param basedOn index of the configuration from which the caller derived `target`; the node
   * refuses the change if another configuration is current.
   */
  changeConfiguration(target: ConfigurationRecord, basedOn?: Index): Promise<ProposalResult> {
    const id = this.#takeOwnId()
    if (!this.#isRunning) return Promise.resolve({ id, ok: false, code: 'NOT_LEADER' })
    return new Promise((resolve) => {
      this.#changes.set(id, resolve)
      const nowMs = this.#clock.nowMs()
      const base = basedOn === undefined ? {} : { basedOn }
      this.#submit({ type: 'changeConfiguration', id, target, ...base, nowMs })
    })
  }

  /**
   * Transfers leadership.
   * @returns true once this node no longer leads, even if it lost leadership for another reason;
   * false when it was not the leader, `target` is not another voter, no voter took over in time, or
   * the node stops.
   */
  transferLeadership(target: NodeId | null): Promise<boolean> {
    const { role, term } = this.#core.status
    if (!this.#isRunning || role !== 'leader') return Promise.resolve(false)
    return new Promise((resolve) => {
      this.#transfers.push({ term, resolve })
      this.#submit({ type: 'transfer', target })
    })
  }

  /** Reports that entries up to `index` are applied. */
  applied(index: Index, timeMs: number, setbackMs = 0): void {
    this.#submit({ type: 'applied', index, timeMs, setbackMs })
  }

  /** Reports that the state through `position` is durable outside the log. */
  compact(position: Position): void {
    this.#submit({ type: 'compact', position })
  }

  snapshotSent(to: NodeId): void {
    this.#submit({ type: 'snapshotSent', to })
  }

  snapshotFailed(to: NodeId): void {
    this.#submit({ type: 'snapshotFailed', to })
  }

  /** Reports that the connection to `to` broke; messages in flight may be lost. */
  unreachable(to: NodeId): void {
    this.#submit({ type: 'unreachable', to })
  }

  status(): FullCoreStatus {
    return this.#core.fullStatus
  }

  #takeOwnId(): number {
    const id = this.#nextOwnId
    this.#nextOwnId -= 1
    return id
  }

  #submit(input: CoreInput): void {
    if (!this.#isRunning) return
    this.#inbox.push(input)
    this.#plan()
  }

  /**
   * Schedules one turn after the I/O of this event loop iteration, so that everything received in
   * this iteration shares the turn.
   */
  #plan(): void {
    if (!this.#isRunning || this.#isTurnPlanned) return
    this.#isTurnPlanned = true
    this.#scheduler.soon(() => {
      this.#isTurnPlanned = false
      if (!this.#isRunning) return
      try {
        this.#turn()
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)))
      }
    })
  }

  #turn(): void {
    const ticks = this.#ticks.take()
    // The Raft core gets the ticks without work before the inputs: if a message from the leader has
    // just arrived, the leader was silent before that message, not after it.
    const quietTicks = Math.min(ticks, this.#core.quietTicks)
    for (let at = 0; at < quietTicks; at += 1) this.#tick()
    const inputs = this.#inbox
    this.#inbox = []
    this.#inboxMessages = 0
    this.#inboxBytes = 0
    for (const input of inputs) {
      if (input.type === 'persisted') this.#durableToken = input.token
      this.#core.step(input)
    }
    this.#stepProposals()
    // The Raft core gets a tick with work after the inputs, so that a leader's message that arrived
    // during a stall counts before the leader's silence does.
    if (ticks > quietTicks) this.#tick()
    this.#releaseGated()
    for (let effects = this.#core.takeEffects(); effects !== null;) {
      this.#carryOut(effects)
      effects = this.#isRunning ? this.#core.takeEffects() : null
    }
    this.#settleTransfers()
    if (this.#isRunning) this.#ticks.plan(this.#core.quietTicks)
  }

  #tick(): void {
    this.#core.step({ type: 'tick', nowMs: this.#clock.nowMs() })
  }

  #stepProposals(): void {
    if (this.#refusedProposals.length > 0) {
      this.#callbacks.onProposals(this.#refusedProposals)
      this.#refusedProposals = []
    }
    if (this.#proposals.length === 0) return
    const proposals = this.#proposals
    this.#proposals = []
    const nowMs = this.#clock.nowMs()
    this.#core.step({ type: 'propose', proposals, nowMs })
  }

  #carryOut(effects: CoreEffects): void {
    // The node handles messages before disk operations: it keeps messages that depend on a write
    // until that write is durable, and the other messages need not wait for a write that blocks.
    for (const outgoing of effects.messages) this.#send(outgoing)
    for (const operation of effects.disk) this.#toDisk(operation)
    // @guard 41-failing-leader-callback-is-passed-over
    if (effects.status !== null) this.#callbacks.onStatus(effects.status)
    if (effects.proposals.length > 0) this.#answerProposals(effects.proposals)
    if (effects.committed.length > 0) this.#callbacks.onCommitted(effects.committed)
    for (const result of effects.reads) {
      this.#reads.get(result.id)?.(result)
      this.#reads.delete(result.id)
    }
    for (const to of effects.sendSnapshots) this.#callbacks.onSendSnapshot(to)
  }

  #send(outgoing: OutgoingMessage): void {
    if (outgoing.afterToken <= this.#durableToken) this.#transport.send(outgoing.message)
    else if (this.#gated.length < this.#limits.gatedMessagesMax) this.#gated.push(outgoing)
  }

  #releaseGated(): void {
    if (this.#gated.length === 0) return
    const gated = this.#gated
    this.#gated = []
    for (const outgoing of gated) this.#send(outgoing)
  }

  #toDisk(operation: DiskOperation): void {
    if (this.#isRestoring) {
      this.#diskBacklog.push(operation)
      return
    }
    switch (operation.type) {
      case 'write':
        this.#disk.write(operation.write)
        return
      case 'reset':
        this.#disk.reset(operation.position, operation.token)
        return
      case 'compact':
        this.#disk.compact(operation.position)
        return
      case 'settle':
        this.#disk.settle(operation.owed)
        return
      case 'restore':
        this.#restore(operation.position, operation.configuration)
        return
    }
  }

  /**
   * Starts a restore. Later disk operations wait until the restore has finished. The Raft core
   * continues meanwhile, and messages that promise something wait for their writes.
   */
  #restore(position: Position, configuration: Uint8Array): void {
    this.#isRestoring = true
    this.#callbacks.onRestore(position, configuration).then(
      () => {
        this.#isRestoring = false
        const backlog = this.#diskBacklog
        this.#diskBacklog = []
        if (!this.#isRunning) return
        for (const operation of backlog) this.#toDisk(operation)
      },
      (error: unknown) => {
        this.#fail(
          new Error(`snapshot at index ${position.index} was not installed`, { cause: error }),
        )
      },
    )
  }

  #answerProposals(results: readonly ProposalResult[]): void {
    if (this.#changes.size === 0) {
      this.#callbacks.onProposals(results)
      return
    }
    const others: ProposalResult[] = []
    for (const result of results) {
      const resolve = this.#changes.get(result.id)
      this.#changes.delete(result.id)
      if (resolve === undefined) others.push(result)
      else resolve(result)
    }
    if (others.length > 0) this.#callbacks.onProposals(others)
  }

  #settleTransfers(): void {
    if (this.#transfers.length === 0) return
    const { role, term, transferTarget } = this.#core.fullStatus
    this.#transfers = this.#transfers.filter((wait) => {
      const isLeading = role === 'leader' && term === wait.term
      if (isLeading && transferTarget !== null) return true
      wait.resolve(!isLeading)
      return false
    })
  }

  #fail(error: Error): void {
    if (!this.#isRunning) return
    this.stop()
    this.#callbacks.onFatal(error)
  }
}

function messageBytes(message: Message): number {
  if (message.type !== 'appendRequest') return 64
  let bytes = 64
  for (const entry of message.entries) bytes += entryBytes(entry)
  return bytes
}
