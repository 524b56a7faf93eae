import { fromBinary } from '@bufbuild/protobuf'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
} from '../../proto/gen/membership_pb.ts'
import { assert } from '../../src/lib/assert.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { RaftCore } from '../../src/raft/core.ts'
import type { CoreStatus, ProposalResult } from '../../src/raft/effects.ts'
import { defaultRaftNodeLimits } from '../../src/raft/node-start.ts'
import { RaftNode } from '../../src/raft/node.ts'
import type { CoreOptions } from '../../src/raft/options.ts'
import type { Disk, DiskWrite, Entry, Message, NodeId, Position } from '../../src/raft/types.ts'
import type { Watched } from './invariants.ts'
import { Platter, SimulatedDisk } from './simulated-disk.ts'

/** A minimal state machine that still distinguishes histories. */
export interface MachineState {
  readonly position: Position
  readonly digest: number
  readonly timeMs: number
  readonly configuration: ConfigurationRecord
}

/** Environment of a simulated node. All times ms. */
export interface World {
  after(delayMs: number, task: () => void): void
  /** True time, without clock skew. */
  readonly nowMs: number
  clockMs(id: NodeId): number
  syncMs(id: NodeId): number
  applyMs(): number
  restoreMs(): number
  random(): number
  send(from: SimulatedNode, message: Message): void
  onWrite(node: SimulatedNode, write: DiskWrite): void
  onApplied(node: SimulatedNode, entry: Entry): void
  onProposals(node: SimulatedNode, results: readonly ProposalResult[]): void
  onStatus(node: SimulatedNode, status: CoreStatus): void
  onSendSnapshot(node: SimulatedNode, to: NodeId): void
  onTurn(node: SimulatedNode): void
}

function digestOf(previous: number, entry: Entry): number {
  let digest = (previous ^ (entry.index * 0x9e3779b1)) >>> 0
  for (const byte of entry.data) digest = Math.imul(digest ^ byte, 0x01000193) >>> 0
  return (digest + entry.term) >>> 0
}

/**
 * One controller: the real core and the real driver, with a simulated disk and a simulated state
 * machine that a crash interrupts.
 */
export class SimulatedNode implements Watched {
  readonly id: NodeId
  readonly store: number
  readonly platter = new Platter()
  /**
   * Whether its peers receive its messages without a store ID, as if no mesh existed between them.
   */
  isHeardAsStranger = false
  /** State on disk, like the platter. */
  persisted: MachineState
  machine: MachineState
  #core: RaftCore | null = null
  #node: RaftNode | null = null
  #disk: SimulatedDisk | null = null
  #life = 0
  #applyQueue: (readonly Entry[])[] = []
  /** Fully received snapshots, by index. */
  readonly received = new Map<number, MachineState>()
  readonly #world: World
  readonly #options: CoreOptions

  constructor(
    world: World,
    options: CoreOptions,
    id: NodeId,
    store: number,
    configuration: ConfigurationRecord,
  ) {
    this.#world = world
    this.#options = options
    this.id = id
    this.store = store
    this.persisted = { position: { term: 0, index: 0 }, digest: 0, timeMs: 0, configuration }
    this.machine = this.persisted
  }

  get core(): RaftCore {
    assert(this.#core !== null, `${this.id} runs`)
    return this.#core
  }

  get node(): RaftNode {
    assert(this.#node !== null, `${this.id} runs`)
    return this.#node
  }

  get isRunning(): boolean {
    return this.#node !== null
  }

  get life(): number {
    return this.#life
  }

  /**
   * Makes its disk an old copy of another node's: part of the log, an earlier term, no vote.
   * @param share share of the log that is copied, 0..1.
   */
  copyFrom(other: SimulatedNode, share: number): void {
    const { base, entries } = other.platter
    const least = Math.max(0, other.persisted.position.index - base.index)
    const count = least + Math.floor((entries.length - least) * share)
    this.platter.base = base
    this.platter.entries = entries.slice(0, Math.max(0, count))
    const term = this.platter.entries.at(-1)?.term ?? base.term
    this.platter.hardState = { term, votedFor: null }
    this.platter.commit = other.persisted.position.index
    this.persisted = other.persisted
    this.machine = other.persisted
  }

  start(): RaftCore {
    assert(!this.isRunning, `${this.id} is stopped`)
    this.#life += 1
    this.machine = this.persisted
    this.#applyQueue = []
    const { position, configuration, timeMs } = this.persisted
    const log = this.platter.restored()
    const core = RaftCore.restore({
      id: this.id,
      storeId: Uint8Array.of(this.store),
      options: this.#options,
      random: seededRandom(Math.floor(this.#world.random() * 2 ** 32)),
      log,
      applied: position,
      configuration,
      appliedTimeMs: timeMs,
    })
    const disk = new SimulatedDisk(this.platter, {
      syncMs: () => this.#world.syncMs(this.id),
      after: (delayMs, task) => {
        this.#whileAlive(delayMs, task)
      },
    })
    this.#core = core
    this.#disk = disk
    this.#node = this.#drive(core, disk)
    this.#node.start()
    return core
  }

  /** @param torn see {@link SimulatedDisk.crash}. */
  crash(torn: number): void {
    this.#node?.stop()
    this.#disk?.crash(torn)
    this.#node = null
    this.#core = null
    this.#disk = null
    this.#life += 1
  }

  /** Persists the state, which happens asynchronously after apply. */
  persist(): void {
    this.persisted = this.machine
  }

  #whileAlive(delayMs: number, task: () => void): void {
    const life = this.#life
    this.#world.after(delayMs, () => {
      if (this.#life === life) task()
    })
  }

  #drive(core: RaftCore, disk: SimulatedDisk): RaftNode {
    const world = this.#world
    const startedMs = world.nowMs
    const watched: Disk = {
      write: (write) => {
        world.onWrite(this, write)
        disk.write(write)
      },
      compact: (position) => {
        disk.compact(position)
      },
      reset: (position, token) => {
        disk.reset(position, token)
      },
      settle: (owed) => {
        disk.settle(owed)
      },
      close: () => disk.close(),
      set onDurable(report: (token: number) => void) {
        disk.onDurable = report
      },
      onFailed: () => undefined,
    }
    return new RaftNode({
      core,
      disk: watched,
      transport: {
        send: (message) => {
          world.send(this, message)
        },
      },
      clock: { nowMs: () => world.clockMs(this.id), monotonicMs: () => world.nowMs - startedMs },
      scheduler: {
        soon: (task) => {
          this.#whileAlive(0, () => {
            task()
            if (this.isRunning) world.onTurn(this)
          })
        },
        after: (delayMs, task) => {
          let isCancelled = false
          this.#whileAlive(delayMs, () => {
            if (!isCancelled) task()
          })
          return () => {
            isCancelled = true
          }
        },
      },
      limits: defaultRaftNodeLimits,
      callbacks: {
        onCommitted: (entries) => {
          this.#apply(entries)
        },
        onProposals: (results) => {
          world.onProposals(this, results)
        },
        onStatus: (status) => {
          world.onStatus(this, status)
        },
        onSendSnapshot: (to) => {
          world.onSendSnapshot(this, to)
        },
        onRestore: (position) => this.#restore(position),
        onFatal: (error) => {
          throw error
        },
      },
    })
  }

  /** Applies batches in order, asynchronously, as another thread would. */
  #apply(entries: readonly Entry[]): void {
    this.#applyQueue.push(entries)
    if (this.#applyQueue.length === 1) this.#applyNext()
  }

  #applyNext(): void {
    this.#whileAlive(this.#world.applyMs(), () => {
      for (const entry of this.#applyQueue[0] ?? []) this.#applyEntry(entry)
      this.#applyQueue.shift()
      this.node.applied(this.machine.position.index, this.machine.timeMs)
      if (this.#applyQueue.length > 0) this.#applyNext()
    })
  }

  #applyEntry(entry: Entry): void {
    const { position, digest, timeMs, configuration } = this.machine
    // A snapshot that was installed in the meantime already contains this entry.
    if (entry.index <= position.index) return
    assert(entry.index === position.index + 1, `${this.id} applies ${entry.index} out of order`)
    assert(entry.timeMs >= timeMs, `log time ran back at ${entry.index}`)
    this.machine = {
      position: { term: entry.term, index: entry.index },
      digest: digestOf(digest, entry),
      timeMs: entry.timeMs,
      configuration:
        entry.type === 'configuration'
          ? fromBinary(ConfigurationSchema, entry.data)
          : configuration,
    }
    this.#world.onApplied(this, entry)
  }

  #restore(position: Position): Promise<void> {
    const state = this.received.get(position.index)
    assert(state !== undefined, `${this.id} was never sent a snapshot of ${position.index}`)
    return new Promise((resolve) => {
      this.#whileAlive(this.#world.restoreMs(), () => {
        assert(
          this.machine.position.index <= position.index,
          `I8: a snapshot sets ${this.id} back from ${this.machine.position.index}`,
        )
        this.machine = state
        this.persisted = state
        this.node.applied(position.index, state.timeMs)
        resolve()
      })
    })
  }
}
