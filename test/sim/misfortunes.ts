import { clone, create, toBinary } from '@bufbuild/protobuf'
import {
  HelloSchema,
  RaftFrameSchema,
  RaftMessageSchema,
  type SnapshotChunk,
  SnapshotChunkSchema,
} from '../../proto/gen/mesh_pb.ts'
import type { ClusterRefusal } from '../../src/cluster/thread-channel.ts'
import { MESH_FRAME_BYTES_MAX } from '../../src/cluster/mesh/mesh-service.ts'
import { assert } from '../../src/lib/assert.ts'
import { type Random, seededRandom } from '../../src/lib/random.ts'
import { encodeConfiguration } from '../../src/raft/configuration.ts'
import type { Index, NodeId } from '../../src/raft/types.ts'
import { StoreError } from '../../src/store/errors.ts'
import type { MemoryState } from '../../src/store/state/memory-state-store.ts'
import type { FaultyMemoryFiles } from '../store/support/faulty-memory-files.ts'
import type { Controller } from './controller.ts'
import { harm, refusesForeign } from './damage.ts'
import { bringLogTimeBack } from './log-time-resets.ts'
import type { Operator } from './operator.ts'
import type { BadInput, Event, Misfortune, Target } from './plan.ts'
import type { Platter } from './platter.ts'
import type { World } from './world.ts'

interface Backup {
  readonly atMs: number
  readonly lastIndex: Index
  readonly files: FaultyMemoryFiles
  readonly stateDisk: MemoryState
}

const BACKUP_MS = 700
const OLD_MS = 2_500
/** Time until an operator corrects log time after a clock has jumped, ms. */
const OPERATOR_MS = 1_000
/** Longer than the delay of any late message, ms. */
const ON_ITS_WAY_MS = 2_000
const OVERSIZED = new Uint8Array(MESH_FRAME_BYTES_MAX + 1)

/** Carries out the events of a plan, each with separate random numbers. */
export class Misfortunes {
  readonly #world: World
  readonly #operator: Operator
  /** Downtime of controllers whose power failed during a write, ms. */
  readonly #downMs = new Map<Controller, number>()
  readonly #slowDisks = new Map<NodeId, { readonly untilMs: number; readonly syncMs: number }>()
  readonly #backups = new Map<Controller, Backup>()
  readonly #old = new Set<Platter>()
  #tampering: BadInput | null = null

  constructor(world: World, operator: Operator) {
    this.#world = world
    this.#operator = operator
    for (const event of world.plan.events) {
      world.loop.after(event.atMs, () => {
        this.#befall(event)
      })
    }
    if (world.plan.events.some(({ what }) => what.type === 'disk rolled back')) this.#backUp()
  }

  /** A repair that a start after the faults must still make; null: none. */
  get unrepaired(): string | null {
    for (const { id, core } of this.#world.running()) {
      if ((core?.fullStatus.owed ?? null) !== null) return `${id} has not got back what it lost`
    }
    return null
  }

  /** True for a disk restored from an old copy, which cannot report the entries that it lost. */
  isOld(platter: Platter): boolean {
    return this.#old.has(platter)
  }

  slowSyncMs(id: NodeId): number {
    const slow = this.#slowDisks.get(id)
    return slow !== undefined && slow.untilMs > this.#world.loop.nowMs ? slow.syncMs : 0
  }

  /** Called when a process could not start, or ended itself. */
  onDown(controller: Controller, error: Error): void {
    const { world } = { world: this.#world }
    if (controller.isCut) {
      this.onPowerCut(controller)
      return
    }
    const broken = /\bI\d+: .*/s.exec(error.message)?.[0]
    if (broken !== undefined) {
      world.fail(new Error(broken, { cause: error }))
      return
    }
    if (error instanceof StoreError && error.code === 'VOTE_LOST') {
      if (!controller.platter.isSlotDamaged) {
        world.fail(
          new Error(`I16: ${controller.id} has lost its vote to a crash`, { cause: error }),
        )
        return
      }
      world.stop(controller)
      this.#enterAnew(controller, 100)
      return
    }
    if (!controller.mayFail) {
      world.fail(new Error(`I16: ${controller.id} stopped: ${error.message}`, { cause: error }))
      return
    }
    world.stop(controller)
    if (world.isHealed) world.startAfter(controller, 10)
    else world.startAfter(controller, this.#downMs.get(controller) ?? 500)
  }

  onPowerCut(controller: Controller): void {
    this.#world.trace.add(this.#world.loop.nowMs, controller.id, 'cut')
    this.#world.tally.note('torn write')
    controller.files.callsLeft = 0
    this.#world.stop(controller)
    controller.files.callsLeft = Infinity
    this.#world.startAfter(controller, this.#downMs.get(controller) ?? 100)
  }

  onSelfRefused(controller: Controller, { reason, index }: ClusterRefusal): void {
    switch (reason) {
      case 'not-yet-a-member':
        return
      case 'removed':
        this.#assertNotListed(controller, index)
        this.#operator.onRemoved(controller)
        return
      case 'other-store':
        this.#assertNotListed(controller, index)
        this.#world.retire(controller)
        return
      case 'fenced':
        this.#world.fail(new Error(`${controller.id} was fenced, and nobody has recovered`))
        return
      case 'rolled-back':
        this.#world.stop(controller)
        this.#enterAnew(controller, 50)
    }
  }

  tamper(chunk: SnapshotChunk): SnapshotChunk {
    const what = this.#tampering
    if (what === null || (what === 'snapshot manifest wrong' && chunk.number !== 0)) return chunk
    this.#tampering = null
    this.#world.tally.note(what as 'snapshot chunk damaged')
    const changed = clone(SnapshotChunkSchema, chunk)
    if (what === 'snapshot manifest wrong' && changed.position !== undefined) {
      changed.position.index += 1n
    } else {
      changed.data = Uint8Array.from(chunk.data)
      changed.data[0] = (changed.data[0] ?? 0) ^ 1
    }
    return changed
  }

  #befall({ what, salt }: Event): void {
    if (this.#world.isHealed) return
    const chance = seededRandom(salt)
    this.#world.trace.add(this.#world.loop.nowMs, 'event', what.type)
    switch (what.type) {
      case 'crash':
        this.#crash(this.#at(what.target, chance), what.downMs)
        return
      case 'crash within a write':
        this.#cutPower(this.#at(what.target, chance), what, chance)
        return
      case 'crash of all':
        this.#world.tally.note('crash of all')
        for (const controller of this.#world.running()) this.#crash(controller, what.downMs)
        return
      case 'pause':
        this.#at(what.target, chance)?.pause(this.#world.loop.nowMs + what.forMs)
        this.#world.tally.note('pause')
        return
      case 'partition':
        this.#part(what, chance)
        return
      case 'slow link':
        this.#slowLink(what, chance)
        return
      case 'clock jump': {
        const controller = this.#at(what.target, chance)
        if (controller === null) return
        this.#world.jumpClock(controller.id, what.byMs)
        this.#world.tally.note('clock jump')
        if (what.byMs > 0) this.#bringLogTimeBack()
        return
      }
      case 'damage':
        this.#damage(what, chance)
        return
      case 'sync failed':
        this.#fault(what, chance, (controller) => {
          controller.files.failsNextSync = true
          this.#downMs.set(controller, what.downMs)
        })
        return
      case 'disk full':
        this.#fault(what, chance, (controller) => {
          controller.files.bytesLeft = 0
          this.#world.loop.after(what.forMs, () => {
            controller.files.bytesLeft = Number.MAX_SAFE_INTEGER
          })
        })
        return
      case 'disk slow':
        this.#fault(what, chance, ({ id }) => {
          const untilMs = this.#world.loop.nowMs + what.forMs
          this.#slowDisks.set(id, { untilMs, syncMs: what.syncMs })
        })
        return
      case 'disk unreadable':
        this.#fault(what, chance, (controller) => {
          controller.files.isUnreadable = true
          this.#crash(controller, 100)
          controller.files.isUnreadable = true
          this.#world.loop.after(what.forMs, () => {
            controller.files.isUnreadable = false
          })
        })
        return
      case 'disk wiped':
        this.#wipe(this.#at(what.target, chance), what.downMs, chance)
        return
      case 'restore':
        // A reset of log time occurs only in runs with restores, because only these have the
        // feature level that both require.
        if (this.#world.plan.seed % 4 === 0) this.#bringLogTimeBack()
        this.#world.restorers.begin(what, chance, (leader) => {
          this.#crash(leader, chance.integer(50, 1_500))
        })
        return
      case 'disk rolled back':
        this.#rollBack(this.#at(what.target, chance), what.downMs)
        return
      case 'operator':
        this.#operator.act(what.verb)
        return
      case 'bad input':
        this.#misbehave(what.what, chance)
        return
      default:
        this.#world.circuits?.befall(what, chance)
    }
  }

  #at(target: Target, chance: Random): Controller | null {
    const leader = this.#world.leader()
    const running = this.#world.running()
    if (target === 'leader' && leader !== null) return leader
    const others = target === 'follower' ? running.filter((one) => one !== leader) : running
    return others[chance.integer(0, others.length - 1)] ?? null
  }

  #crash(controller: Controller | null, downMs: number): void {
    if (controller === null || (!controller.isRunning && !controller.isStarting)) return
    const { tally, trace, loop } = this.#world
    trace.add(loop.nowMs, controller.id, 'crash')
    tally.note('crash')
    tally.note('unsynced writes lost')
    this.#world.stop(controller)
    this.#world.startAfter(controller, downMs)
  }

  #cutPower(
    controller: Controller | null,
    what: Extract<Misfortune, { type: 'crash within a write' }>,
    chance: Random,
  ): void {
    if (controller === null) return
    this.#world.tally.note('crash within a write')
    controller.files.callsLeft = what.calls
    controller.files.tornShare = chance.next()
    this.#downMs.set(controller, what.downMs)
  }

  #fault(
    what: Extract<Misfortune, { readonly target: Target }>,
    chance: Random,
    carryOut: (controller: Controller) => void,
  ): void {
    const controller = this.#at(what.target, chance)
    if (controller === null) return
    controller.mayFail = true
    this.#world.tally.note(what.type as 'disk full')
    carryOut(controller)
  }

  #part(what: Extract<Misfortune, { type: 'partition' }>, chance: Random): void {
    const { network, tally, loop, controllers } = this.#world
    const ids = [...controllers.keys()]
    const [a, b] = shuffled(ids, chance)
    const sides = new Map(ids.map((id) => [id, chance.next() < 0.5]))
    const cutBoth = (from: NodeId, to: NodeId): void => {
      network.cut(from, to)
      network.cut(to, from)
    }
    if (a === undefined || b === undefined) return
    switch (what.shape) {
      case 'sides':
        tally.note('partition')
        for (const from of ids) {
          for (const to of ids) if (sides.get(from) !== sides.get(to)) network.cut(from, to)
        }
        break
      case 'leader': {
        tally.note('partition')
        const id = this.#world.leader()?.id ?? a
        for (const other of ids) if (other !== id) cutBoth(id, other)
        break
      }
      case 'bridge':
        tally.note('bridge partition')
        cutBoth(a, b)
        break
      case 'one-way':
        tally.note('one-way cut')
        network.cut(a, b)
        break
      case 'half-open':
        tally.note('half-open link')
        for (const other of ids) if (other !== a) network.cut(a, other)
    }
    loop.after(what.forMs, () => {
      network.mend()
    })
  }

  #slowLink(what: Extract<Misfortune, { type: 'slow link' }>, chance: Random): void {
    const { network, tally, loop, controllers } = this.#world
    const [a, b] = shuffled([...controllers.keys()], chance)
    if (a === undefined || b === undefined) return
    tally.note('slow link')
    network.slow(a, b, what.extraMs)
    if (chance.next() < 0.5) network.slow(b, a, what.extraMs)
    loop.after(what.forMs, () => {
      network.mend()
    })
  }

  #bringLogTimeBack(): void {
    this.#world.loop.after(OPERATOR_MS, () => {
      const [controller] = this.#world.running()
      if (controller !== undefined) void bringLogTimeBack(this.#world, controller)
    })
  }

  #damage(what: Extract<Misfortune, { type: 'damage' }>, chance: Random): void {
    const controller = this.#at(what.target, chance)
    if (controller === null) return
    if (what.what === 'log of another store' || what.what === 'log of a newer format') {
      this.#crash(controller, what.downMs)
      const fault = refusesForeign(controller, what.what)
      assert(fault === null, `bad input: ${fault}`)
      this.#world.tally.note(what.what)
      return
    }
    const isSlot = what.what === 'bit flipped in a meta slot'
    if (!isSlot && !this.#mayForget(controller)) return
    this.#crash(controller, what.downMs)
    const isMany = controller.files.paths().filter((path) => path.endsWith('.seg')).length > 1
    const ofMany = chance.next() < 0.5 ? 'segment missing' : 'segment cut short'
    const done = isMany && !isSlot && chance.next() < 0.5 ? ofMany : what.what
    if (!harm(controller, done, chance)) return
    this.#world.tally.note(done)
    if (isSlot) {
      controller.platter.isSlotDamaged = true
      return
    }
    controller.platter.isDamaged = true
    this.#world.invariants.forgetful.add(controller.id)
  }

  #wipe(controller: Controller | null, downMs: number, chance: Random): void {
    if (controller === null || !this.#mayForget(controller)) return
    this.#world.tally.note('disk wiped')
    const leader = this.#world.leader()
    this.#crash(controller, downMs)
    // If the leader crashes as well, no other node has the entries that only these two nodes have
    // just acknowledged.
    if (chance.next() < 0.5) this.#crash(leader, downMs)
    this.#enterAnew(controller, downMs)
  }

  /**
   * The controller returns with an empty disk under the old name; the others re-admit it on
   * request.
   */
  #enterAnew(controller: Controller, downMs: number): void {
    const { world } = { world: this.#world }
    const record = world.leader()?.core?.status
    const again = world.replaceDisk(controller)
    again.form([])
    again.roster ??=
      record === undefined
        ? null
        : {
            configuration: encodeConfiguration(record.committedConfigurationRecord),
            index: record.committedConfigurationIndex,
            claims: [],
            marks: [],
          }
    this.#operator.enter(again)
    world.startAfter(again, downMs)
  }

  #backUp(): void {
    const { loop } = this.#world
    loop.after(BACKUP_MS, () => {
      this.#backUp()
      for (const controller of this.#world.running()) {
        const before = this.#backups.get(controller)
        if (before !== undefined && loop.nowMs - before.atMs < 2 * OLD_MS) continue
        const { records } = controller.stateDisk
        this.#backups.set(controller, {
          atMs: loop.nowMs,
          lastIndex: controller.platter.lastIndex,
          files: controller.files.copy(),
          stateDisk: { ...controller.stateDisk, records: new Map(records) },
        })
      }
    })
  }

  /** Restores a copy that is old enough for its peers to detect it. */
  #rollBack(controller: Controller | null, downMs: number): void {
    if (controller === null || !this.#mayForget(controller)) return
    const backup = this.#backups.get(controller)
    const { loop, tally, controllers } = this.#world
    const isOld =
      backup !== undefined &&
      loop.nowMs - backup.atMs >= OLD_MS &&
      controller.applied - backup.lastIndex > 10
    if (!isOld || [...controllers.values()].some(({ isRunning }) => !isRunning)) return
    tally.note('disk rolled back')
    this.#crash(controller, downMs)
    this.#backups.delete(controller)
    controller.files = backup.files
    controller.stateDisk = backup.stateDisk
    this.#world.losePromises(controller)
    this.#old.add(controller.platter)
  }

  /**
   * Only one voter may lose its promises at a time, out of at least three, and none while members
   * change: no quorum can compensate for more.
   */
  #mayForget(controller: Controller): boolean {
    const status = this.#world.leader()?.core?.status
    // A removal in flight may be logged after the disk is lost. The leader then needs this vote in
    // the new configuration, and no other member has a log as long as the leader's.
    if (status === undefined || this.#operator.hasWishes) return false
    const { configuration, isConfigurationCommitted } = status
    if (!isConfigurationCommitted || configuration.outgoingVoters.length > 0) return false
    for (const other of this.#world.controllers.values()) {
      if (other.platter.isDamaged) return false
    }
    return configuration.voters.length >= 3 || !configuration.voters.includes(controller.id)
  }

  /**
   * A controller may receive the message that it is removed only if the newest committed
   * configuration does not list its disk. It may have been re-admitted while the message was in
   * flight, but it must reject a message no newer than the configuration with which it joined.
   */
  #assertNotListed(controller: Controller, index: Index): void {
    const world = this.#world
    const isNews = index > (controller.roster?.index ?? 0)
    const wasListed = world.isListed(controller, world.loop.nowMs - ON_ITS_WAY_MS)
    assert(
      !world.isListed(controller) || (isNews && !wasListed),
      `I13: ${controller.id} is a member, but was told that it is not`,
    )
  }

  #misbehave(what: BadInput, chance: Random): void {
    const { tally, loop } = this.#world
    if (what === 'snapshot chunk damaged' || what === 'snapshot manifest wrong') {
      this.#tampering = what
      return
    }
    const running = this.#world.running()
    const target = running[chance.integer(0, running.length - 1)]
    const other = running.find((one) => one !== target)
    if (target?.life === undefined || target.life === null || other === undefined) return
    const { life } = target
    const before = JSON.stringify(life.core.fullStatus.last)
    tally.note(what)
    const receive = (bytes: Uint8Array): void => {
      loop.within(life.threads.raft, () => life.mesh.receiveRaw(other.id, bytes))
    }
    const refuses = (leafOf: NodeId, changes: object, reason: string): void => {
      const hello = create(HelloSchema, {
        clusterId: 'simulated',
        generation: 1,
        nodeId: leafOf,
        storeId: new Uint8Array(16),
        ...changes,
      })
      const verdict = life.mesh.greet(this.#world.leafOf(leafOf), hello, null)
      assert(
        !verdict.ok && verdict.reason === reason,
        `bad input: ${what} is answered by ${verdict.ok ? 'a welcome' : verdict.reason}`,
      )
      tally.note('stranger refused')
    }
    switch (what) {
      case 'frame too large':
        receive(OVERSIZED)
        break
      case 'frame of another version':
        // Field 99 with an unknown wire type.
        receive(Uint8Array.of(0x9a, 0x06, 0x02, 0x01, 0x02))
        break
      case 'message from the future': {
        const value = create(RaftMessageSchema, {
          term: 2n ** 60n,
          body: { case: 'timeoutNow', value: {} },
        })
        receive(
          toBinary(RaftFrameSchema, create(RaftFrameSchema, { frame: { case: 'message', value } })),
        )
        break
      }
      case 'hello of another cluster':
        if (!target.lists(other.id)) return
        refuses(other.id, { clusterId: 'another' }, 'other-cluster')
        break
      case 'hello of another generation':
        if (!target.lists(other.id)) return
        refuses(other.id, { generation: 2 }, 'other-generation')
        break
      case 'hello of a removed member':
        refuses('n9', {}, 'not-a-member')
        break
    }
    const after = JSON.stringify(life.core.fullStatus.last)
    assert(after === before, `bad input: ${what} changed the log of ${target.id}`)
  }
}

function shuffled(ids: readonly NodeId[], chance: Random): NodeId[] {
  return ids
    .map((id) => ({ id, at: chance.next() }))
    .sort((one, other) => one.at - other.at)
    .map(({ id }) => id)
}
