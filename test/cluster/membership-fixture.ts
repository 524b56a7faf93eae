import { createPublicKey } from 'node:crypto'

import { toBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { MembershipControl } from '../../src/ports/membership.ts'
import { queryAdmission, requestAdmission } from '../../src/cluster/membership/admission-client.ts'
import { RejoinLoop } from '../../src/cluster/membership/rejoin-loop.ts'
import type { AdmissionOutcome } from '../../src/cluster/membership/decide-admission.ts'
import {
  createMemberManagement,
  type MemberManagement,
} from '../../src/cluster/membership/manage.ts'
import { eventually } from '../support/eventually.ts'
import { RecordedActions, anOperator } from '../support/recorded-actions.ts'
import {
  formCluster,
  type StartChanges,
  type TestCluster,
  type TestNode,
} from './cluster-fixture.ts'
import { CLUSTER_ID, TRUST_DOMAIN, until } from './mesh-fixture.ts'

/** Removals whose cleanup is complete. */
export interface Settled {
  readonly by: string
  readonly id: string
  readonly isCompromised: boolean
}

/**
 * A cluster with membership management. Admissions are replicated state; here all controllers share
 * one table of them. Tests of the state machine cover differences between controllers.
 */
export class ManagedCluster {
  readonly cluster: TestCluster
  readonly settled: Settled[] = []
  /** Audited actions of all controllers. */
  readonly actions = new RecordedActions()
  /** How far the clock of membership management is ahead of the system's monotonic clock. */
  aheadMs = 0
  /** ID of a controller that cannot complete removals. */
  stuckInSettling: string | null = null
  /** Admitted controllers whose ticket has expired. */
  admittedIdsWithExpiredTickets: readonly string[] = []
  readonly #admissions = new Map<string, EntityRecord>()
  readonly #managements = new Map<string, MemberManagement>()
  readonly #entrances = new Map<string, RejoinLoop>()
  readonly #joinTimeoutMs: number

  private constructor(cluster: TestCluster, joinTimeoutMs: number) {
    this.cluster = cluster
    this.#joinTimeoutMs = joinTimeoutMs
  }

  static async form(size: number, joinTimeoutMs = 60_000): Promise<ManagedCluster> {
    const managed = new ManagedCluster(await formCluster(size), joinTimeoutMs)
    await Promise.all(managed.cluster.ids.map(async (id) => await managed.start(id)))
    await managed.cluster.leader()
    return managed
  }

  async start(id: string, changes: StartChanges = {}): Promise<TestNode> {
    return this.#manage(await this.cluster.start(id, changes))
  }

  /** Admits a controller, as redeeming a ticket does. */
  async admit(id: string, isVoter = true): Promise<void> {
    const { certificatePem } = await this.cluster.identityOf(id)
    const spki = createPublicKey(certificatePem).export({ type: 'spki', format: 'der' })
    const base = { id, createdAt: 0, updatedAt: 0, revision: 1, tags: {} }
    const publicKeySpki = spki.toString('base64')
    this.#admissions.set(id, { ...base, publicKeySpki, isVoter })
  }

  isAdmitted(id: string): boolean {
    return this.#admissions.has(id)
  }

  /** Starts an admitted controller with an empty disk, which then requests admission. */
  async join(id: string): Promise<TestNode> {
    const configuration = await this.configuration()
    const node = this.#manage(await this.cluster.startJoiner(id, { configuration }))
    this.#entrance(node)
    return node
  }

  /** Starts a stopped member again with an empty disk, as after the loss of its disk. */
  async comeBack(id: string, storeId: Uint8Array): Promise<TestNode> {
    const configuration = await this.configuration()
    const node = await this.start(id, { from: 'nothing', configuration, storeId })
    this.#entrance(node)
    return node
  }

  control(id: string): MembershipControl {
    return this.management(id).control
  }

  management(id: string): MemberManagement {
    const management = this.#managements.get(id)
    if (management === undefined) throw new Error(`${id} does not run`)
    return management
  }

  async kill(id: string): Promise<void> {
    this.#managements.get(id)?.stop()
    this.#managements.delete(id)
    this.#entrances.get(id)?.stop()
    await this.cluster.node(id).kill()
    this.cluster.nodes.delete(id)
  }

  /** The leader's voters, once no change is in progress. */
  async voters(): Promise<readonly string[]> {
    const { clusterNode } = await this.cluster.leader()
    const { record, isCommitted } = clusterNode.configuration()
    if (!isCommitted || record.outgoingVoters.length > 0) return []
    return record.members.flatMap(({ id, voter }) => (voter ? [id] : [])).sort()
  }

  /**
   * Repeats the transfer until it succeeds, because on a busy machine another voter may start an
   * election first.
   */
  async untilLeader(id: string): Promise<void> {
    await eventually(async () => await this.control(id).transferLeadership(id, anOperator))
  }

  /** Waits until the leader lists the controller, possibly as a learner. */
  async untilMember(id: string): Promise<void> {
    const { clusterNode } = await this.cluster.leader()
    await until(`${id} is listed`, () =>
      clusterNode.configuration().record.members.some((member) => member.id === id),
    )
  }

  async untilVoters(...ids: readonly string[]): Promise<void> {
    const wanted = [...ids].sort().join()
    let seen = ''
    await until(`${wanted} vote`, () => {
      void this.voters().then((voters) => (seen = voters.join()))
      return seen === wanted
    })
  }

  async enter(node: TestNode, addresses: readonly string[]): Promise<AdmissionOutcome> {
    return await requestAdmission({ ...(await this.#entry(node, addresses)), featureLevel: 1 })
  }

  async query(node: TestNode, addresses: readonly string[]): Promise<AdmissionOutcome> {
    return await queryAdmission(await this.#entry(node, addresses))
  }

  async #entry(
    node: TestNode,
    addresses: readonly string[],
  ): Promise<Parameters<typeof queryAdmission>[0]> {
    return {
      addresses,
      identity: await this.cluster.identityOf(node.id),
      trustDomain: TRUST_DOMAIN,
      clusterId: CLUSTER_ID,
      storeId: node.storeId,
      address: node.address,
      version: '1.0.0',
      startedAtMs: node.startedAtMs,
      timeoutMs: 10_000,
    }
  }

  async configuration(): Promise<Uint8Array> {
    const { clusterNode } = await this.cluster.leader()
    return toBinary(ConfigurationSchema, clusterNode.configuration().record)
  }

  async stop(): Promise<void> {
    for (const entrance of this.#entrances.values()) entrance.stop()
    for (const management of this.#managements.values()) management.stop()
    await this.cluster.stop()
  }

  #manage(node: TestNode): TestNode {
    const management = createMemberManagement({
      consensus: node.clusterNode,
      state: {
        get: (entity, id) =>
          (entity === 'admission' ? this.#admissions.get(id) : undefined) as never,
        get featureLevel() {
          return node.machine.featureLevel
        },
        waitForApplied: (index, timeoutMs) => node.machine.waitForApplied(index, timeoutMs),
      },
      clusterId: CLUSTER_ID,
      generation: 1,
      clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + this.aheadMs },
      log: node.log.log,
      actions: this.actions,
      joinTimeoutMs: this.#joinTimeoutMs,
      secrets: {
        afterRemoval: (id, { isCompromised }) => {
          if (node.id === this.stuckInSettling) return new Promise(() => undefined)
          this.#admissions.delete(id)
          this.settled.push({ by: node.id, id, isCompromised })
          return Promise.resolve()
        },
        isRotationDue: () => false,
        admittedIdsWithExpiredTickets: () =>
          this.admittedIdsWithExpiredTickets.filter((id) => this.isAdmitted(id)),
        rotateIfDue: () => Promise.resolve(),
        admittedIdsLackingSecrets: () => [],
        wrapMissingSecrets: () => Promise.resolve(false),
      },
      featureLevel: { own: 1, raise: () => Promise.resolve() },
    })
    management.start()
    this.#managements.set(node.id, management)
    return node
  }

  #entrance(node: TestNode): void {
    const entrance = new RejoinLoop({
      consensus: node.clusterNode,
      storeId: node.storeId,
      seeds: () => [],
      enter: async (addresses) => await this.enter(node, addresses),
      onAnswer: () => undefined,
      clock: systemClock,
      log: node.log.log,
    })
    this.#entrances.set(node.id, entrance)
    entrance.start()
  }
}
