import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { CoreStatus } from '../../src/raft/effects.ts'
import type { NodeId } from '../../src/raft/types.ts'
import { configurationOf } from './members.ts'
import type { SimulatedCluster } from './simulated-cluster.ts'
import type { SimulatedNode } from './simulated-node.ts'

/**
 * An operator who changes the membership: adds learners on empty disks, promotes, demotes, removes
 * and replaces members, and re-admits those whose disk was wiped or restored from an old copy.
 */
export class Operator {
  readonly #cluster: SimulatedCluster
  readonly #spares: NodeId[]
  #nextStore = 2
  #burnt: { readonly id: NodeId; readonly store: number } | null = null
  #committedIndex = 0
  #committed: ConfigurationRecord | null = null
  readonly #admitted = new Set<string>()

  constructor(cluster: SimulatedCluster, spares: readonly NodeId[]) {
    this.#cluster = cluster
    this.#spares = [...spares]
  }

  /**
   * Wipes a voter's disk or restores an old copy, and so gives it a new store ID. The voter returns
   * under its name and needs re-admission. Sometimes the voter runs before its re-admission without
   * a mesh, which would hide it from the others; then the cluster stays safe only because this
   * voter does not vote.
   */
  #burn(): void {
    const { leader, chance, nodes } = this.#cluster
    if (this.#burnt !== null || leader === null) return
    const { configuration } = leader.core.status
    if (configuration.voters.length < 3 || configuration.outgoingVoters.length > 0) return
    const id = this.#worstLoss(configuration.voters, leader)
    const node = id === undefined ? undefined : nodes.get(id)
    if (node === undefined || node === leader) return
    // If the leader crashes as well, no other node has the entries that only these two nodes have
    // just acknowledged.
    if (chance.next() < 0.5) this.#cluster.crash(leader)
    this.#burnt = { id: node.id, store: this.#nextStore }
    this.#nextStore += 1
    this.#cluster.removeNode(node)
    const again = this.#cluster.addNode(node.id, this.#burnt.store, node.persisted.configuration)
    const isRolledBack = chance.next() < 0.5
    if (isRolledBack) again.copyFrom(node, chance.next())
    if (chance.next() < 0.5) return
    again.isHeardAsStranger = true
    this.#cluster.startNode(again)
  }

  /** Usually the voter that has acknowledged the most entries. */
  #worstLoss(voters: readonly NodeId[], leader: SimulatedNode): NodeId | undefined {
    const { chance } = this.#cluster
    if (chance.next() < 0.3) return voters[chance.integer(0, voters.length - 1)]
    const peers = leader.core.fullStatus.peers.filter(({ id }) => voters.includes(id))
    return peers.sort((a, b) => b.matchIndex - a.matchIndex)[0]?.id
  }

  isAwaitingAdmission(id: NodeId): boolean {
    return this.#burnt?.id === id
  }

  /**
   * Retries until the leader lists the new disk as a learner, then starts the node with that disk.
   * It continues after the faults end.
   */
  repair(): void {
    const { leader } = this.#cluster
    if (this.#burnt === null || leader === null) return
    const { id, store } = this.#burnt
    const known = this.#committed?.members.find((one) => one.id === id)
    if (this.#committed !== null && (known === undefined || known.storeId[0] === store)) {
      this.#burnt = null
      const node = this.#cluster.nodes.get(id)
      if (node?.store === store && !node.isRunning) this.#cluster.startNode(node)
      return
    }
    const { configuration, configurationRecord, isConfigurationCommitted } = leader.core.status
    if (!isConfigurationCommitted || configuration.outgoingVoters.length > 0) return
    const stores = new Map(configurationRecord.members.map((one) => [one.id, one.storeId[0] ?? 0]))
    stores.set(id, store)
    const voters = configuration.voters.filter((voter) => voter !== id)
    const learners = [...configuration.learners.filter((learner) => learner !== id), id]
    void leader.node.changeConfiguration(configurationOf({ voters, learners, stores }))
  }

  /** Requests one random change from the current leader, which may refuse it. */
  act(): void {
    const { leader, chance } = this.#cluster
    if (this.#burnt !== null) return
    if (chance.next() < 0.3) {
      this.#burn()
      return
    }
    if (leader === null) return
    const { configuration, configurationRecord, isConfigurationCommitted } = leader.core.status
    if (configuration.outgoingVoters.length > 0) return
    // Sometimes requests another change before the last one is complete.
    if (!isConfigurationCommitted && chance.next() < 0.5) return
    const stores = new Map(configurationRecord.members.map((one) => [one.id, one.storeId[0] ?? 0]))
    const voters = new Set(configuration.voters)
    const learners = new Set(configuration.learners)
    const changes = chance.integer(1, 3)
    for (let at = 0; at < changes; at += 1) this.#alter(voters, learners, stores)
    if (voters.size === 0) return
    const lists = { voters: [...voters], learners: [...learners], stores }
    void leader.node.changeConfiguration(configurationOf(lists))
  }

  #alter(voters: Set<NodeId>, learners: Set<NodeId>, stores: Map<NodeId, number>): void {
    const { chance } = this.#cluster
    const any = (ids: ReadonlySet<NodeId>): NodeId | undefined =>
      [...ids][chance.integer(0, ids.size - 1)]
    const voter = any(voters)
    const learner = any(learners)
    switch (chance.integer(0, 5)) {
      case 0:
      case 1:
        this.#admit(learners, stores)
        return
      case 2:
      case 3:
        if (learner === undefined) return
        learners.delete(learner)
        voters.add(learner)
        return
      case 4:
        if (voter === undefined || voters.size < 3) return
        voters.delete(voter)
        if (chance.next() < 0.5) learners.add(voter)
        return
      default:
        if (learner !== undefined) learners.delete(learner)
    }
  }

  #admit(learners: Set<NodeId>, stores: Map<NodeId, number>): void {
    const id = this.#spares.shift()
    if (id === undefined) return
    const store = this.#nextStore
    this.#nextStore += 1
    const leader = this.#cluster.leader
    if (leader === null) return
    learners.add(id)
    stores.set(id, store)
    const node = this.#cluster.addNode(id, store, leader.core.status.configurationRecord)
    this.#cluster.startNode(node)
  }

  /**
   * Keeps the newest configuration that any node knows to be committed, and every member that was
   * ever in one.
   */
  learn(status: CoreStatus): void {
    if (!status.isConfigurationCommitted || status.configurationIndex <= this.#committedIndex)
      return
    this.#committedIndex = status.configurationIndex
    this.#committed = status.configurationRecord
    for (const { id, storeId } of status.configurationRecord.members) {
      this.#admitted.add(`${id}/${storeId[0]}`)
    }
  }

  /** Wipes a machine whose removal is committed. Another disk may later use its name. */
  tidy(): void {
    if (this.#committed === null || this.#committed.outgoingVoters.length > 0) return
    for (const [id, node] of this.#cluster.nodes) {
      if (this.#burnt?.id === id) continue
      const member = this.#committed.members.find((one) => one.id === id)
      if (member?.storeId[0] === node.store) continue
      if (!this.#admitted.has(`${id}/${node.store}`) || this.#cluster.chance.next() < 0.95) continue
      this.#cluster.removeNode(node)
      this.#spares.push(id)
    }
  }
}
