import { clone } from '@bufbuild/protobuf'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
} from '../../proto/gen/membership_pb.ts'
import {
  MemberChanger,
  type RequestedMemberChange,
} from '../../src/cluster/membership/member-changer.ts'
import { learnersAwaitingPromotion } from '../../src/cluster/membership/reconcile.ts'
import {
  decideAdmission,
  type AdmissionVerdict,
} from '../../src/cluster/membership/decide-admission.ts'
import {
  isReadyToVote,
  makeVoter,
  planMembershipChange,
} from '../../src/cluster/membership/plan.ts'
import type { MembershipSnapshot } from '../../src/cluster/membership/membership-snapshot.ts'
import { isSameBytes } from '../../src/cluster/membership/member-keys.ts'
import { assert } from '../../src/lib/assert.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { Random } from '../../src/lib/random.ts'
import type { MembershipChange } from '../../src/ports/membership.ts'
import { encodeConfiguration } from '../../src/raft/configuration.ts'
import type { NodeId } from '../../src/raft/types.ts'
import { CLUSTER_ID, type Controller, type Life, storeIdOf } from './controller.ts'
import type { TestCertificates } from './test-certificates.ts'
import type { Verb } from './plan.ts'
import type { Tally } from './tally.ts'
import type { VirtualLoop } from './virtual-loop.ts'

/** Functions that the operator needs from the simulated world. */
export interface OperatorWorld {
  readonly loop: VirtualLoop
  readonly chance: Random
  readonly tally: Tally
  readonly keyring: TestCertificates
  readonly controllers: ReadonlyMap<NodeId, Controller>
  readonly isHealed: boolean
  leader(): Controller | null
  /** Installs a machine with an empty disk under that name. */
  install(id: NodeId): Controller
  retire(controller: Controller): void
}

/** A requested change, sent to each new leader until it is done or no longer wanted. */
interface Wish {
  readonly what: string
  readonly untilMs: number
  /** The leader process that received the last request. */
  askedOf: Life | null
  isOver: boolean
  wanted(leader: Controller): RequestedMemberChange | null
}

type Admission = Extract<AdmissionVerdict, { readonly target: ConfigurationRecord }>

const LOOK_AGAIN_MS = 50
const LOOK_MS = 150
const WISH_MS = 4_000
const SPARES = ['n6', 'n7', 'n8'] as const

/**
 * Operators and the leader's automatic maintenance: they add, promote, demote, remove and replace
 * members and transfer leadership while all faults occur, with the production rules
 * (src/cluster/membership).
 */
export class Operator {
  readonly #world: OperatorWorld
  readonly #spares: NodeId[]
  readonly #changers = new WeakMap<Life, MemberChanger>()
  #wishes: Wish[] = []
  /** Members whose disk is not the listed one, and that need (re-)admission. */
  readonly #entering = new Map<NodeId, Controller>()
  /**
   * Members whose machine was removed after they learned of their removal, and the time until which
   * the removal is requested again, ms.
   */
  readonly #gone = new Map<NodeId, number>()

  constructor(world: OperatorWorld) {
    this.#world = world
    this.#spares = SPARES.filter((id) => !world.controllers.has(id))
    this.#look()
  }

  /** True for a member whose disk lost its promises, until its new disk is admitted. */
  isEntering(id: NodeId): boolean {
    return this.#entering.has(id)
  }

  /**
   * Whether a change is requested, or a voter has lost its disk or has an old one and may not have
   * noticed yet.
   */
  get hasWishes(): boolean {
    return this.#wishes.length > 0 || this.#entering.size > 0
  }

  /** Admits a controller with an unknown disk, and retries until it succeeds. */
  enter(controller: Controller): void {
    this.#entering.set(controller.id, controller)
  }

  /** Called when a controller learns that it was removed: its machine may be reused. */
  onRemoved(controller: Controller): void {
    const { id } = controller
    this.#entering.delete(id)
    this.#gone.set(id, 0)
    this.#world.retire(controller)
    if (!this.#spares.includes(id)) this.#spares.push(id)
  }

  act(verb: Verb): void {
    const { chance, tally } = this.#world
    const leader = this.#world.leader()
    if (leader === null) return
    const record = leader.core?.status.configurationRecord
    if (record === undefined) return
    const any = (isVoter: boolean): NodeId | undefined => {
      const ids = record.members.flatMap(({ id, voter }) => (voter === isVoter ? [id] : []))
      return ids[chance.integer(0, ids.length - 1)]
    }
    const [voter, learner] = [any(true), any(false)]
    switch (verb) {
      case 'add':
        this.#add(leader)
        return
      case 'promote':
        if (learner === undefined) return
        this.#wish({ verb: 'promote', id: learner })
        return
      case 'demote':
        if (voter === undefined) return
        this.#wish({ verb: 'demote', id: voter })
        return
      case 'remove':
      case 'remove leader': {
        const id = verb === 'remove leader' ? leader.id : (any(chance.next() < 0.5) ?? voter)
        if (id !== undefined) this.#wish({ verb: 'remove', id, isCompromised: false })
        return
      }
      case 'replace':
        if (voter === undefined || learner === undefined) return
        this.#wish({ verb: 'replace', oldId: voter, newId: learner })
        return
      case 'transfer': {
        const { life } = leader
        if (life === null) return
        tally.note('transfer asked for')
        const target = chance.next() < 0.5 ? null : (voter ?? null)
        this.#within(life, async () => {
          await life.clusterNode.transferLeadership(target)
          tally.note('transfer done')
        })
        return
      }
      case 'two admins':
        this.#quarrel(leader, record)
    }
  }

  #add(leader: Controller): void {
    const known = leader.core?.status
    // A join is answered only when the latest configuration is committed. A member that knows only
    // an older one, whose members may all leave, would know no current member.
    if (known?.configurationIndex !== known?.committedConfigurationIndex) {
      if (!this.#world.isHealed) this.#world.loop.after(LOOK_AGAIN_MS, () => this.act('add'))
      return
    }
    const id = this.#spares.shift()
    if (id === undefined) return
    const controller = this.#world.install(id)
    this.#gone.delete(id)
    this.#world.tally.note('member added')
    const status = leader.core?.status
    if (status === undefined) return
    controller.roster = {
      configuration: encodeConfiguration(status.committedConfigurationRecord),
      index: status.committedConfigurationIndex,
      claims: [],
      marks: [],
    }
    controller.form([])
    this.enter(controller)
    controller.start()
  }

  /** Requests two changes at the same time, one of them from an outdated configuration. */
  #quarrel(leader: Controller, record: ConfigurationRecord): void {
    const { life } = leader
    const basis = leader.core?.status.configurationIndex ?? 0
    if (life === null || record.members.length < 2) return
    this.#world.tally.note('two admins at once')
    this.act('promote')
    this.act('demote')
    this.#within(life, async () => {
      const target = clone(ConfigurationSchema, record)
      target.members = target.members.filter(({ id, voter }) => voter || id === leader.id)
      target.outgoingVoters = []
      await life.clusterNode.changeConfiguration(target, basis)
    })
  }

  #wish(change: MembershipChange): void {
    const what = `${change.verb}`
    this.#wishes.push({
      what,
      untilMs: this.#world.loop.nowMs + WISH_MS,
      askedOf: null,
      isOver: false,
      wanted: () => ({
        what,
        waitMs: WISH_MS,
        timeoutMs: WISH_MS,
        isDone: (now) => isDone(now.record, change),
        target: (now) => {
          const planned = planMembershipChange(now, change)
          if (!planned.ok) throw new Problem('MEMBERSHIP_REFUSED')
          return planned.target
        },
      }),
    })
    const kinds = {
      promote: 'member promoted',
      demote: 'member demoted',
      remove: 'member removed',
      replace: 'member replaced',
    } as const
    this.#world.tally.note(kinds[change.verb])
  }

  #look(): void {
    const { loop } = this.#world
    loop.after(LOOK_MS, () => {
      this.#look()
      const leader = this.#world.leader()
      this.#wishes = this.#wishes.filter(({ isOver, untilMs }) => !isOver && untilMs > loop.nowMs)
      if (leader === null || leader.life === null) return
      for (const wish of this.#wishes) this.#ask(leader, wish)
      this.#letIn(leader)
      this.#steward(leader)
      this.#takeOutTheGone(leader)
    })
  }

  #ask(leader: Controller, wish: Wish): void {
    const { life } = leader
    if (life === null || wish.askedOf === life || wish.isOver) return
    const wanted = wish.wanted(leader)
    if (wanted === null) return
    wish.askedOf = life
    this.#within(life, async () => {
      await this.#changerOf(leader).run(wanted)
      wish.isOver = true
    })
  }

  /** Decides whether to request the admission. @returns null when there is nothing to request. */
  #judge(controller: Controller, record: ConfigurationRecord): Admission | null {
    const { id } = controller
    // The controller was removed in the meantime: if it were admitted now, it would be a member
    // without a machine.
    if (this.#entering.get(id) !== controller) return null
    const { publicKeySha256 } = this.#world.keyring.of(id)
    const request = {
      clusterId: CLUSTER_ID,
      storeId: storeIdOf(controller.store),
      address: `${id}:1`,
      version: 'v1',
      featureLevel: 1,
      startedAtMs: 0,
    }
    const verdict = decideAdmission({ id, publicKeySha256 }, request, {
      record,
      configurationIndex: 0,
      clusterId: CLUSTER_ID,
      featureLevel: 1,
      admitted: { keySha256: publicKeySha256, isVoter: true },
      liveStartedAtMs: null,
    })
    return 'target' in verdict ? verdict : null
  }

  #letIn(leader: Controller): void {
    for (const [id, controller] of this.#entering) {
      const storeId = storeIdOf(controller.store)
      const isListed = ({ members }: ConfigurationRecord): boolean =>
        members.some((member) => member.id === id && isSameBytes(member.storeId, storeId))
      const { status } = leader.core ?? {}
      if (status?.isConfigurationCommitted === true && isListed(status.configurationRecord)) {
        this.#entering.delete(id)
        continue
      }
      const changer = this.#changerOf(leader)
      if (changer.isBusy || leader.life === null || status === undefined) continue
      // Futile requests must not delay other changes at the leader.
      if (this.#judge(controller, status.configurationRecord) === null) continue
      this.#within(leader.life, async () => {
        await changer.run({
          what: `let ${id} in`,
          waitMs: 0,
          timeoutMs: WISH_MS,
          isDone: ({ record }) => isListed(record),
          target: ({ record }) => {
            const verdict = this.#judge(controller, record)
            if (verdict === null) throw new Problem('MEMBERSHIP_REFUSED')
            if (verdict.verdict === 'returning') this.#world.tally.note('re-admission')
            return verdict.target
          },
        })
      })
    }
  }

  /**
   * A change that admits a controller may have been in flight when its machine was removed. Then
   * the cluster has a member without a machine, which this removes.
   */
  #takeOutTheGone(leader: Controller): void {
    for (const { id } of leader.core?.status.configurationRecord.members ?? []) {
      const askedUntilMs = this.#gone.get(id) ?? Infinity
      const { nowMs } = this.#world.loop
      if (askedUntilMs > nowMs || this.#world.controllers.has(id)) continue
      this.#gone.set(id, nowMs + WISH_MS)
      this.#wish({ verb: 'remove', id, isCompromised: false })
    }
  }

  /** Promotes learners that have caught up, and completes removals; secrets are not simulated. */
  #steward(leader: Controller): void {
    const changer = this.#changerOf(leader)
    const record = leader.core?.status.configurationRecord
    if (changer.isBusy || record === undefined || leader.life === null) return
    const isDue = record.departed.length > 0 || learnersAwaitingPromotion(record).length > 0
    if (!isDue) return
    this.#within(leader.life, async () => {
      await changer.run({
        what: 'the work of a leader',
        waitMs: 0,
        timeoutMs: WISH_MS,
        isDone: (now) => now.record.departed.length === 0 && ready(now).length === 0,
        target: (now) => {
          const target = clone(ConfigurationSchema, now.record)
          if (target.departed.length > 0) target.departed = []
          else
            for (const member of target.members)
              if (ready(now).includes(member.id)) makeVoter(member)
          return target
        },
      })
    })
  }

  #changerOf(leader: Controller): MemberChanger {
    const { life } = leader
    assert(life !== null, 'a leader runs')
    const known = this.#changers.get(life)
    if (known !== undefined) return known
    const made = new MemberChanger(life.clusterNode, life.machine, {
      nowMs: () => this.#world.loop.nowMs,
      monotonicMs: () => this.#world.loop.nowMs,
    })
    this.#changers.set(life, made)
    return made
  }

  /** Runs work in the leader's process; if the process ends, the work ends too. */
  #within(life: Life, work: () => Promise<void>): void {
    this.#world.loop.within(life.threads.main, () => {
      void work().catch((error: unknown) => {
        if (!(error instanceof Problem)) throw error
      })
    })
  }
}

function ready(now: MembershipSnapshot): readonly NodeId[] {
  return learnersAwaitingPromotion(now.record).filter((id) => isReadyToVote(now, id))
}

function isDone({ members }: ConfigurationRecord, change: MembershipChange): boolean {
  const of = (id: NodeId) => members.find((member) => member.id === id)
  switch (change.verb) {
    case 'promote':
      return of(change.id)?.voter === true
    case 'demote':
      return of(change.id)?.voter !== true
    case 'remove':
      return of(change.id) === undefined
    case 'replace':
      return of(change.oldId) === undefined && of(change.newId)?.voter === true
  }
}
