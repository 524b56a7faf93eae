import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind } from '../../proto/gen/command_pb.ts'
import { ConfigurationSchema, type Member } from '../../proto/gen/membership_pb.ts'
import { CounterMachine } from '../../bench/support/counter-machine.ts'
import { ClusterNode } from '../../src/cluster/cluster-node.ts'
import {
  type ClusterNodeOptions,
  defaultClusterNodeOptions,
} from '../../src/cluster/cluster-node-deps.ts'
import type { MemberDescriptionStore } from '../../src/cluster/soft-state/known-members.ts'
import type { QuarantineRecord } from '../../src/cluster/state-transfer/quarantine.ts'
import type { ApiAddress } from '../../src/ports/cluster-view.ts'
import { ConsensusThread } from '../../src/cluster/replication/consensus-thread.ts'
import type { ConsensusOptions } from '../../src/cluster/consensus-options.ts'
import { createSameThreadChannel, type ClusterRefusal } from '../../src/cluster/thread-channel.ts'
import type { MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import type { AuditRecord } from '../../src/ports/audit.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import type { MembershipRecord } from '../../src/ports/membership-cache.ts'
import type { Entry, RestoredLog } from '../../src/raft/types.ts'
import { MemoryDisk } from '../support/memory-disk.ts'
import { freePort } from '../support/ports.ts'
import {
  type Authority,
  CLUSTER_ID,
  controllerIdentity,
  createAuthority,
  memberOf,
  RecordedLog,
  storeIdOf,
  TRUST_DOMAIN,
  until,
} from './mesh-fixture.ts'
import { anySession } from '../support/commands.ts'

export interface TestNode {
  readonly id: string
  readonly clusterNode: ClusterNode
  readonly machine: CounterMachine
  readonly log: RecordedLog
  readonly disk: MemoryDisk
  /** Audit records of this controller's writes. */
  readonly audited: readonly AuditRecord[]
  readonly fatal: Error[]
  /** Payloads of the commands that took effect on this controller, in order. */
  readonly effects: string[]
  readonly selfRefusals: ClusterRefusal[]
  readonly rosters: MembershipRecord[]
  readonly address: string
  readonly storeId: Uint8Array
  readonly startedAtMs: number
  /** Stops like a killed process, without any message to others. */
  kill: () => Promise<void>
}

export interface TestCluster {
  readonly ids: readonly string[]
  readonly authority: Authority
  /** Creates a certificate and an address for a future member, so that `start` knows it. */
  prepare: (id: string) => Promise<Member>
  member: (id: string) => Member
  readonly nodes: Map<string, TestNode>
  start: (id: string, changes?: StartChanges) => Promise<TestNode>
  /**
   * Starts a controller of the same CA without a member record: it has a key, an address and an
   * empty log.
   */
  startJoiner: (id: string, changes: JoinerChanges) => Promise<TestNode>
  identityOf: (id: string) => Promise<MeshIdentity>
  node: (id: string) => TestNode
  leader: () => Promise<TestNode>
  stop: () => Promise<void>
}

export interface StartChanges {
  readonly clusterNode?: Partial<ClusterNodeOptions>
  /**
   * How to start without the previous log and state; `nothing`: with a newly created log, `empty`:
   * without a log.
   */
  readonly from?: 'memory' | 'nothing' | 'empty'
  /** A log from which to start instead, such as an old copy. */
  readonly log?: { readonly disk: MemoryDisk; readonly restored: RestoredLog }
  /** Store id of a new disk. */
  readonly storeId?: Uint8Array
  readonly host?: Partial<ConsensusOptions>
  readonly persistEntries?: number
  readonly snapshotBytesPerSecond?: number
  /** Encoded membership.v1.Configuration from which to start instead of a newly created log. */
  readonly configuration?: Uint8Array
  readonly memory?: MemberDescriptionStore
  readonly quarantineMark?: QuarantineRecord
  readonly apiAddresses?: readonly ApiAddress[]
  readonly priority?: number
  readonly clock?: Clock
}

export type JoinerChanges = StartChanges & { readonly configuration: Uint8Array }

function hasNoLog({ from, configuration }: StartChanges): boolean {
  return from === 'empty' || configuration !== undefined
}

export function firstEntries(members: readonly Member[]): Entry[] {
  const configuration = create(ConfigurationSchema, { members: [...members] })
  const data = toBinary(ConfigurationSchema, configuration)
  return [{ index: 1, term: 1, timeMs: 1, type: 'configuration', data }]
}

/** Controllers in one process, over real gRPC and TLS on loopback, with logs in memory. */
export async function formCluster(size: number): Promise<TestCluster> {
  const authority = await createAuthority()
  const ids = Array.from({ length: size }, (_, i) => `n${i + 1}`)
  const identities = new Map<string, MeshIdentity>()
  const members: Member[] = []
  const identityOf = async (id: string): Promise<MeshIdentity> => {
    const identity = identities.get(id) ?? (await controllerIdentity(authority, id))
    identities.set(id, identity)
    return identity
  }
  const prepared: Member[] = []
  const prepare = async (id: string): Promise<Member> => {
    const identity = await identityOf(id)
    const member = memberOf(id, identity, `127.0.0.1:${await freePort()}`)
    prepared.push(member)
    return member
  }
  const memberNamed = (id: string): Member => {
    const member = prepared.find((candidate) => candidate.id === id)
    if (member === undefined) throw new Error(`no member ${id}`)
    return member
  }
  for (const id of ids) members.push(await prepare(id))
  const nodes = new Map<string, TestNode>()
  const logs = new Map<string, { disk: MemoryDisk; restored: RestoredLog }>()

  const start = async (id: string, changes: StartChanges = {}): Promise<TestNode> => {
    const isKept = changes.from === undefined || changes.from === 'memory'
    const before = isKept ? logs.get(id) : undefined
    const formed = () =>
      before === undefined
        ? MemoryDisk.form({ entries: hasNoLog(changes) ? [] : firstEntries(members) })
        : before.disk.reopen()
    const opened = changes.log ?? formed()
    logs.set(id, opened)
    const identity = await identityOf(id)
    const member = memberNamed(id)
    const node = await startNode({ id, member, identity, ...opened, changes })
    nodes.set(id, node)
    return node
  }

  return {
    ids,
    authority,
    prepare,
    member: memberNamed,
    nodes,
    start,
    startJoiner: async (id, changes) => {
      await prepare(id)
      return await start(id, changes)
    },
    identityOf,
    node: (id) => {
      const node = nodes.get(id)
      if (node === undefined) throw new Error(`no node ${id}`)
      return node
    },
    leader: async () => {
      const find = () =>
        [...nodes.values()].find(({ clusterNode }) => clusterNode.status().role === 'leader')
      await until('a leader exists', () => find() !== undefined)
      const leader = find()
      if (leader === undefined) throw new Error('the leader is gone again')
      return leader
    },
    stop: async () => {
      await Promise.all([...nodes.values()].map(async (node) => await node.kill()))
    },
  }
}

interface NodeParts {
  readonly id: string
  readonly member: Member
  readonly identity: MeshIdentity
  readonly disk: MemoryDisk
  readonly restored: RestoredLog
  readonly changes: StartChanges
}

async function startNode(parts: NodeParts): Promise<TestNode> {
  const { id, member, identity, disk, restored, changes } = parts
  const machine = new CounterMachine({
    persistEntries: changes.persistEntries ?? 1_000_000,
    isChained: true,
  })
  const effects: string[] = []
  machine.onCommand = (payload) => effects.push(new TextDecoder().decode(payload))
  const log = new RecordedLog()
  const fatal: Error[] = []
  const audited: AuditRecord[] = []
  const selfRefusals: ClusterRefusal[] = []
  const rosters: MembershipRecord[] = []
  const storeId = changes.storeId ?? storeIdOf(id)
  const { main, host: hostLink } = createSameThreadChannel()
  const self = {
    id,
    version: '1.0.0',
    startedAtMs: Date.now(),
    apiAddresses: changes.apiAddresses ?? [],
    ...(changes.priority === undefined ? {} : { priority: changes.priority }),
    certificatePem: identity.certificatePem,
  }
  const clusterNode = new ClusterNode(
    {
      ...defaultClusterNodeOptions,
      lowSpaceBytes: 0,
      self,
      clusterId: CLUSTER_ID,
      generation: 1,
      storeId,
      boot: restored.boot,
      ...changes.clusterNode,
    },
    {
      link: main,
      machine,
      clock: changes.clock ?? systemClock,
      log: log.log,
      onFatal: (error) => fatal.push(error),
      audit: {
        applied: (record) => audited.push(record),
        refused: () => undefined,
        answered: () => undefined,
      },
      onSelfRefused: (refusal) => selfRefusals.push(refusal),
      onRoster: (roster) => rosters.push(roster),
      ...(changes.memory === undefined ? {} : { memory: changes.memory }),
      ...(changes.quarantineMark === undefined ? {} : { quarantineMark: changes.quarantineMark }),
    },
  )
  const bytesPerSecond = changes.snapshotBytesPerSecond
  new ConsensusThread(
    {
      ...self,
      selfId: id,
      clusterId: CLUSTER_ID,
      generation: 1,
      storeId,
      trustDomain: TRUST_DOMAIN,
      identity,
      bind: member.address,
      advertise: member.address,
      addressHints: [],
      applied: { term: 0, index: 0 },
      appliedTimeMs: 0,
      configuration: changes.configuration ?? new Uint8Array(0),
      ...(bytesPerSecond === undefined ? {} : { snapshots: { bytesPerSecond } }),
      ...changes.host,
    },
    { link: hostLink, disk, restored, clock: changes.clock ?? systemClock },
  )
  await clusterNode.start()
  let isKilled = false
  const kill = async (): Promise<void> => {
    if (isKilled) return
    isKilled = true
    await clusterNode.stop()
  }
  const { address } = member
  const { startedAtMs } = self
  return {
    id,
    clusterNode,
    machine,
    log,
    disk,
    fatal,
    audited,
    effects,
    selfRefusals,
    rosters,
    address,
    storeId,
    startedAtMs,
    kill,
  }
}

export function command(text: string): ProposalInput {
  return {
    kind: CommandKind.ENTITY_CREATE,
    payload: new TextEncoder().encode(text),
    actor: anySession(),
  }
}
