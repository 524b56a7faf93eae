import { toBinary } from '@bufbuild/protobuf'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { ClusterNode } from '../../src/cluster/cluster-node.ts'
import { defaultClusterNodeOptions } from '../../src/cluster/cluster-node-deps.ts'
import { ConsensusThread } from '../../src/cluster/replication/consensus-thread.ts'
import type { ConsensusThreadEvent, ClusterRefusal } from '../../src/cluster/thread-channel.ts'
import { hasOtherVoters, membershipFromRecord } from '../../src/controller/start/known-voters.ts'
import { StateDamagedError } from '../../src/fsm/records/load.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import { assert } from '../../src/lib/assert.ts'
import type { Clock } from '../../src/lib/clock.ts'
import type { MembershipRecord } from '../../src/ports/membership-cache.ts'
import { ROUTER_ADDRESS_NAME } from '../../src/ports/cluster-view.ts'
import type { AppliedEntry } from '../../src/ports/replicated-state-machine.ts'
import type { RaftCore } from '../../src/raft/core.ts'
import { decodeEntries } from '../../src/raft/entry-codec.ts'
import type { DiskWrite, Entry, Index, NodeId } from '../../src/raft/types.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import { createMemoryState, type MemoryState } from '../../src/store/state/memory-state-store.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import { FaultyMemoryFiles, PowerCut } from '../store/support/faulty-memory-files.ts'
import type { TestCertificates } from './test-certificates.ts'
import type { Plan } from './plan.ts'
import { Platter } from './platter.ts'
import { linkThreads } from './process-link.ts'
import { type MeshWorld, SimulatedMesh } from './simulated-mesh.ts'
import { SimulatedWal } from './simulated-wal.ts'
import { SlowStore } from './slow-store.ts'
import { Context } from './virtual-loop.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

export const CLUSTER_ID = 'simulated'
export const TRUST_DOMAIN = 'test.flotilla'
export const DATA = '/data'

/** Functions that a controller needs from the simulated world. Times ms. */
export interface ControllerWorld extends MeshWorld {
  readonly keyring: TestCertificates
  readonly plan: Plan
  clockOf(id: NodeId): Clock
  syncMs(id: NodeId): number
  storeMs(): number
  applyMs(): number
  readonly chance: { next(): number; integer(min: number, max: number): number }
  onWrite(controller: Controller, write: DiskWrite): void
  onApplied(controller: Controller, entry: Entry, applied: AppliedEntry): void
  onRestored(controller: Controller, isInMidApply: boolean): void
  /** The controller reports that its log has a missing tail. */
  onOwing(controller: Controller): void
  onStarted(controller: Controller): void
  /** The controller could not start, or stopped on its own. */
  onDown(controller: Controller, error: Error): void
  onSelfRefused(controller: Controller, refusal: ClusterRefusal): void
  onHostEvent(controller: Controller, event: ConsensusThreadEvent): void
}

/** A running process. */
export interface Life {
  readonly threads: { readonly main: Context; readonly raft: Context; readonly wal: Context }
  readonly machine: StateMachine
  readonly clusterNode: ClusterNode
  readonly core: RaftCore
  readonly mesh: SimulatedMesh
}

export function storeIdOf(store: number): Uint8Array {
  const bytes = new Uint8Array(16)
  new DataView(bytes.buffer).setUint32(0, store)
  bytes[15] = 1
  return bytes
}

/**
 * One controller: a name, a disk, and, while it runs, the production parts in three threads: the
 * cluster node with the state machine, the host with core and driver, and the log. Only the network
 * and the disks are simulated.
 */
export class Controller {
  readonly id: NodeId
  /** Number of its disk; another disk under the same name counts as another store. */
  readonly store: number
  files = new FaultyMemoryFiles()
  stateDisk: MemoryState = createMemoryState()
  roster: MembershipRecord | null = null
  platter = new Platter()
  life: Life | null = null
  /** State of the running machine, for backups. */
  state: ClusterState | null = null
  isStarting = false
  /** A fault was injected that may end the process, so its end is not a bug. */
  mayFail = false
  readonly #world: ControllerWorld
  #threads: Context[] = []
  /** Index of the last entry handed to apply. */
  #handed: Index = 0
  #busyMs = 0

  constructor(world: ControllerWorld, id: NodeId, store: number) {
    this.#world = world
    this.id = id
    this.store = store
  }

  get isRunning(): boolean {
    return this.life !== null
  }

  get core(): RaftCore | undefined {
    return this.life?.core
  }

  /** Forms a data folder whose log begins with these entries; none for a joining controller. */
  form(entries: readonly Entry[]): void {
    const { segmentBytes } = this.#world.plan
    const identity = {
      nodeId: this.id,
      storeId: storeIdOf(this.store),
      clusterId: CLUSTER_ID,
      generation: 1,
    }
    const tool = new Context(`forming ${this.id}`)
    tool.isOver = true
    this.#world.loop.within(tool, () => {
      createDataFolder(
        DATA,
        { ...identity, entries },
        { files: this.files, segmentBytes, freeBytesMin: FREE_BYTES_MIN },
      )
    })
    this.platter.entries = [...entries]
    this.platter.hardState = { term: entries.at(-1)?.term ?? 0, votedFor: null }
  }

  /**
   * Clears the model's promises: the disk was restored from an old copy without the controller's
   * knowledge.
   */
  forgetPromises(): void {
    this.platter = new Platter()
    this.platter.isDamaged = true
  }

  /** Whether the controller's newest configuration lists that member. */
  lists(id: NodeId): boolean {
    return this.core?.status.configurationRecord.members.some((one) => one.id === id) === true
  }

  /** Starts the process; the world is notified of the result. */
  start(): void {
    assert(this.life === null && !this.isStarting, `${this.id} is stopped`)
    const { loop } = this.#world
    this.isStarting = true
    const threads = {
      main: new Context(`${this.id} main`),
      raft: new Context(`${this.id} raft`),
      wal: new Context(`${this.id} wal`),
    }
    threads.wal.immediateMs = () => this.#world.syncMs(this.id)
    this.#threads = [threads.main, threads.raft, threads.wal]
    loop.longWork += 1
    loop.afterIn(threads.main, 0, () => {
      void this.#start(threads)
        .catch((error: unknown) => {
          if (threads.main.isOver) return
          this.#world.onDown(this, error instanceof Error ? error : new Error(String(error)))
        })
        .finally(() => {
          loop.longWork -= 1
        })
    })
  }

  /**
   * Ends the process; unsynced data may be lost.
   * @param noticeMs time until peers notice that its streams ended.
   */
  crash(): void {
    const { chance } = this.#world
    for (const thread of this.#threads) thread.isOver = true
    this.#threads = []
    const mesh = this.life?.mesh
    this.life = null
    this.state = null
    this.isStarting = false
    this.#busyMs = 0
    mesh?.closeAll()
    const before = this.files
    this.files = before.afterPowerCut(chance)
    this.files.bytesLeft = before.bytesLeft
  }

  /** @param untilMs virtual time. */
  pause(untilMs: number): void {
    for (const thread of this.#threads) thread.pausedUntilMs = untilMs
  }

  isPaused(nowMs: number): boolean {
    return this.#threads.some(({ pausedUntilMs }) => pausedUntilMs > nowMs)
  }

  /**
   * Called after each event of one of its threads. The time that the event took keeps the thread
   * busy.
   */
  settle(context: Context): void {
    if (this.#busyMs === 0) return
    context.pausedUntilMs = Math.max(context.pausedUntilMs, this.#world.loop.nowMs + this.#busyMs)
    this.#busyMs = 0
  }

  async #start(threads: Life['threads']): Promise<void> {
    const world = this.#world
    const { loop, plan, keyring } = world
    const clock = this.#clock()
    const store = new SlowStore(
      this.stateDisk,
      {
        writeMs: () => world.storeMs(),
        stepMs: () => world.chance.integer(0, plan.rates.chunkMsMax),
      },
      plan.chunkBytes,
    )
    const machine = await this.#openState(async () =>
      StateMachine.open({
        store,
        clock,
        limits: plan.writeBehind,
        onState: (state) => {
          this.state = state
        },
      }),
    )
    const mark = machine.persistedMark()
    const ofState = { configuration: mark.configuration, index: mark.position.index }
    const known = [ofState, membershipFromRecord(this.roster)]
    const opened = loop.within(threads.wal, () =>
      openLog(DATA, {
        files: this.files,
        segmentBytes: plan.segmentBytes,
        bufferBytes: 8 * 1024,
        freeBytesMin: FREE_BYTES_MIN,
        statePosition: mark.position.index === 0 ? null : mark.position,
        stateCameBySnapshot: mark.cameBySnapshot,
        hasOtherVoters: hasOtherVoters(this.id, known),
      }),
    )
    const { restored } = opened
    this.platter.restart(this.id, restored)
    if (opened.repair !== null) {
      assert(this.platter.isDamaged, `I16: ${this.id} repairs a log that only crashes affected`)
      world.tally.note('repair begun')
    }
    if (restored.owed !== null) world.onOwing(this)
    this.#observe(machine)
    const disk = new SimulatedWal(
      loop,
      { main: threads.raft, wal: threads.wal },
      opened.disk,
      this.platter,
    )
    const links = linkThreads(loop, threads, (event) => this.#onHostEvent(event))
    const self = {
      id: this.id,
      version: 'v1',
      startedAtMs: Math.floor(clock.nowMs()),
      apiAddresses: world.plan.circuits === null ? [] : [routerAddressOf(this.id)],
      certificatePem: '',
    }
    const clusterNode = new ClusterNode(
      {
        ...defaultClusterNodeOptions,
        lowSpaceBytes: 0,
        ...plan.clusterNode,
        self,
        clusterId: CLUSTER_ID,
        generation: 1,
        storeId: storeIdOf(this.store),
        boot: restored.boot,
      },
      {
        link: links.main,
        machine,
        clock,
        log: SILENT,
        onFatal: (error) => world.onDown(this, error),
        onSelfRefused: (refusal) => world.onSelfRefused(this, refusal),
        onRoster: (roster) => {
          this.roster = roster
        },
        loopDelay: NO_DELAY,
      },
    )
    let mesh: SimulatedMesh | null = null
    const watched = watch(disk, {
      onWrite: (write) => world.onWrite(this, write),
      onCompact: () => world.tally.note('log compacted'),
    })
    const { identity } = keyring.of(this.id)
    const host = loop.within(
      threads.raft,
      () =>
        new ConsensusThread(
          {
            selfId: this.id,
            clusterId: CLUSTER_ID,
            generation: 1,
            storeId: storeIdOf(this.store),
            trustDomain: TRUST_DOMAIN,
            identity,
            bind: `${this.id}:1`,
            advertise: `${this.id}:1`,
            addressHints: [],
            version: 'v1',
            startedAtMs: self.startedAtMs,
            apiAddresses: self.apiAddresses,
            applied: mark.position,
            appliedTimeMs: machine.logTimeMs + machine.setbackMs,
            appliedSetbackMs: machine.setbackMs,
            configuration: toBinary(ConfigurationSchema, mark.configuration),
            roster: this.roster,
            core: plan.core,
            snapshots: plan.snapshots,
          },
          {
            link: links.host,
            disk: watched,
            restored,
            clock,
            loopDelay: NO_DELAY,
            mesh: (options, parts, events) => {
              mesh = new SimulatedMesh(options, parts, events, { world, context: threads.raft })
              return mesh
            },
          },
        ),
    )
    assert(mesh !== null, 'a host makes its mesh')
    this.life = { threads, machine, clusterNode, core: host.core, mesh }
    this.isStarting = false
    world.onStarted(this)
    void clusterNode.start()
  }

  /** Opens the state, or discards a damaged state, which the log or the peers then restore. */
  async #openState(open: () => Promise<StateMachine>): Promise<StateMachine> {
    try {
      return await open()
    } catch (error) {
      const isKnown = hasOtherVoters(this.id, [membershipFromRecord(this.roster)])
      if (!(error instanceof StateDamagedError) || !isKnown) throw error
      assert(
        this.platter.isDamaged,
        `I16: ${this.id} finds its state damaged, although only crashes affected it`,
      )
      Object.assign(this.stateDisk, createMemoryState())
      return await open()
    }
  }

  #clock(): Clock {
    const clock = this.#world.clockOf(this.id)
    // The clock of each controller starts at zero when its process starts, so that controllers tick
    // at different times.
    const startedMs = clock.monotonicMs()
    return {
      nowMs: () => Math.floor(clock.nowMs() + this.#busyMs),
      monotonicMs: () => clock.monotonicMs() - startedMs + this.#busyMs,
    }
  }

  #observe(machine: StateMachine): void {
    const apply = machine.apply.bind(machine)
    const restore = machine.restore.bind(machine)
    machine.apply = (entry) => {
      this.#busyMs += this.#world.applyMs()
      const applied = apply(entry)
      this.#world.onApplied(this, entry, applied)
      return applied
    }
    machine.restore = async (receiver) => {
      const isInMidApply = machine.progress().applied < this.#handed
      const { loop } = this.#world
      loop.longWork += 1
      try {
        await restore(receiver)
      } finally {
        loop.longWork -= 1
      }
      this.#world.onRestored(this, isInMidApply)
    }
  }

  #onHostEvent(event: ConsensusThreadEvent): void {
    if (event.type === 'committed') this.#handed = decodeEntries(event.entries).at(-1)?.index ?? 0
    this.#world.onHostEvent(this, event)
  }

  /** Index of the last entry in the controller's state. */
  get applied(): Index {
    return this.life?.machine.progress().applied ?? 0
  }

  /** Whether a simulated power cut occurred during a write. */
  get isCut(): boolean {
    return this.files.callsLeft <= 0
  }
}

/** Address that routers receive. */
function routerAddressOf(id: NodeId): { api: string; url: string; version: string } {
  return { api: ROUTER_ADDRESS_NAME, url: `tls:${id}:6262`, version: '' }
}

export const FREE_BYTES_MIN = 256 * 1024

const NO_DELAY = { p99Ms: 0, stop: () => undefined }
const nothing = (): void => undefined
const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing }

function watch(
  disk: SimulatedWal,
  watcher: { readonly onWrite: (write: DiskWrite) => void; readonly onCompact: () => void },
): SimulatedWal {
  const write = disk.write.bind(disk)
  const compact = disk.compact.bind(disk)
  disk.write = (given) => {
    watcher.onWrite(given)
    write(given)
  }
  disk.compact = (position) => {
    watcher.onCompact()
    compact(position)
  }
  return disk
}

export function isPowerCut(error: unknown): boolean {
  return error instanceof PowerCut || (error instanceof Error && isPowerCut(error.cause))
}
