import { create, fromBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import { CommandKind, CommandSchema, FeatureLevelRaiseSchema } from '../../proto/gen/command_pb.ts'
import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import {
  type KnownFeatureLevels,
  commonVoterFeatureLevel,
  proposeFeatureLevel,
} from '../../src/cluster/feature-level.ts'
import type { PeerReport } from '../../src/cluster/thread-channel.ts'
import { MemberChanger } from '../../src/cluster/membership/member-changer.ts'
import type { MembershipConsensus } from '../../src/cluster/membership/membership-consensus.ts'
import { MembershipReconciler } from '../../src/cluster/membership/reconciler.ts'
import { unpackProposals } from '../../src/cluster/replication/proposal-codec.ts'
import { LocalProposals } from '../../src/cluster/replication/local-proposals.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Problem } from '../../src/lib/problems.ts'
import { SYSTEM_ACTOR } from '../../src/ports/actor.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import type { Role } from '../../src/raft/types.ts'
import { RecordedActions } from '../support/recorded-actions.ts'
import { until } from './mesh-fixture.ts'

// Goal: any leader raises the feature level once when every voter supports the new level; no
// command of a higher level is proposed before.

type Peer = KnownFeatureLevels['peers'][number]

function peer(id: string, featureLevel: number, isConnected = true): Peer {
  return { id, featureLevel, isConnected }
}

describe('the feature level that every voter supports', () => {
  const known = (own: number, ...peers: Peer[]): KnownFeatureLevels => ({
    selfId: 'n1',
    own,
    peers,
  })
  const voters = ['n1', 'n2', 'n3']

  test.each<[string, number, KnownFeatureLevels]>([
    ['the level that all voters have in common', 2, known(2, peer('n2', 2), peer('n3', 2))],
    ['the lowest level of the voters', 2, known(4, peer('n2', 2), peer('n3', 3))],
    ['the level of the leader if it is the oldest', 1, known(1, peer('n2', 2), peer('n3', 2))],
    ['0 while one voter has not reported its level', 0, known(2, peer('n2', 2), peer('n3', 0))],
    ['0 while one voter has never connected', 0, known(2, peer('n2', 2))],
    ['0 while one voter is disconnected', 0, known(2, peer('n2', 2), peer('n3', 2, false))],
    ['independent of learners', 2, known(2, peer('n2', 2), peer('n3', 2), peer('n4', 1))],
    [
      'independent of disconnected learners',
      2,
      known(2, peer('n2', 2), peer('n3', 2), peer('n4', 0, false)),
    ],
  ])('is %s', (_title, level, levels) => {
    expect(commonVoterFeatureLevel(voters, levels)).toBe(level)
  })

  test('is the level of the only voter in a cluster of one, and 0 if there are no voters', () => {
    expect(commonVoterFeatureLevel(['n1'], known(2))).toBe(2)
    expect(commonVoterFeatureLevel([], known(2))).toBe(0)
  })
})

/** What one controller sees of a cluster whose log is `cluster`. */
class SeenConsensus implements MembershipConsensus {
  readonly selfId: string
  role: Role
  peersSeen: readonly Peer[]
  readonly peers: MembershipConsensus['peers'] = {
    note: () => undefined,
    onNote: () => undefined,
    onLink: () => undefined,
    readyPeers: () => [],
    call: () => Promise.reject(new Problem('PEER_UNREACHABLE')),
    serve: () => undefined,
  }
  readonly #record = create(ConfigurationSchema, {
    members: ['n1', 'n2', 'n3', 'n4'].map((id) => create(MemberSchema, { id, voter: id !== 'n4' })),
  })

  constructor(selfId: string, role: Role, peers: readonly Peer[]) {
    this.selfId = selfId
    this.role = role
    this.peersSeen = peers
  }

  leaderId = (): string => this.selfId
  status = () => ({ role: this.role, commit: 9 })
  configuration = () => ({ record: this.#record, index: 1, isCommitted: true })
  peerStatuses = (): readonly PeerReport[] =>
    this.peersSeen.map((seen) => ({
      ...seen,
      address: '',
      silentMs: 0,
      version: '',
      startedAtMs: 1,
      apiAddresses: [],
      certificatePem: '',
      matchIndex: 9,
    }))
  readIndex = () => Promise.resolve(9)
  transferLeadership = () => Promise.resolve()
  changeConfiguration = () => Promise.resolve(null)
}

/**
 * The membership reconciler of a controller; a raised level is applied immediately unless the test
 * makes it fail.
 */
function stewardOf(
  consensus: SeenConsensus,
  cluster: { featureLevel: number; raised: string[]; fails?: boolean },
): MembershipReconciler {
  const state = {
    get featureLevel() {
      return cluster.featureLevel
    },
    get: () => undefined,
    waitForApplied: () => Promise.resolve(true),
  }
  return new MembershipReconciler({
    consensus,
    state,
    clock: systemClock,
    actions: new RecordedActions(),
    changer: new MemberChanger(consensus, state, systemClock),
    log: { info: () => undefined, warn: () => undefined },
    secrets: {
      afterRemoval: () => Promise.resolve(),
      isRotationDue: () => false,
      admittedIdsWithExpiredTickets: () => [],
      rotateIfDue: () => Promise.resolve(),
      admittedIdsLackingSecrets: () => [],
      wrapMissingSecrets: () => Promise.resolve(false),
    },
    featureLevel: {
      own: 2,
      raise: (level) => {
        cluster.raised.push(`${consensus.selfId} ${level}`)
        if (cluster.fails === true) return Promise.reject(new Problem('CLUSTER_NO_LEADER'))
        cluster.featureLevel = level
        return Promise.resolve()
      },
    },
  })
}

/** Waits for several runs of a reconciler that is not blocked. */
async function severalTurns(consensus: SeenConsensus): Promise<void> {
  let turns = 0
  const status = consensus.status
  consensus.status = () => {
    turns += 1
    return status()
  }
  await until('it has looked several times', () => turns > 5)
}

describe('a leader', () => {
  test('raises the feature level once, when the last voter supports the new level, and ignores learners', async () => {
    const learner = peer('n4', 1)
    const consensus = new SeenConsensus('n1', 'leader', [peer('n2', 2), peer('n3', 1), learner])
    const cluster = { featureLevel: 1, raised: [] as string[] }
    const steward = stewardOf(consensus, cluster)
    steward.start()
    await severalTurns(consensus)
    expect(cluster.raised).toEqual([])
    consensus.peersSeen = [peer('n2', 2), peer('n3', 2, false), learner]
    await severalTurns(consensus)
    expect(cluster.raised, 'one member is unreachable').toEqual([])
    consensus.peersSeen = [peer('n2', 2), peer('n3', 2), learner]
    await until('it is raised', () => cluster.featureLevel === 2)
    consensus.peersSeen = [peer('n2', 1), peer('n3', 1), learner]
    await severalTurns(consensus)
    steward.stop()
    expect(cluster.raised).toEqual(['n1 2'])
  })

  test('that loses leadership before it has raised the feature level leaves this to the next leader, which raises the level once', async () => {
    const first = new SeenConsensus('n1', 'leader', [peer('n2', 2), peer('n3', 2)])
    const second = new SeenConsensus('n2', 'follower', [peer('n1', 2), peer('n3', 2)])
    const cluster = { featureLevel: 1, raised: [] as string[], fails: true }
    const stewards = [stewardOf(first, cluster), stewardOf(second, cluster)]
    for (const steward of stewards) steward.start()
    await until('the first one has tried', () => cluster.raised.length > 0)
    first.role = 'follower'
    cluster.fails = false
    await severalTurns(second)
    expect(cluster.featureLevel, 'there is no leader').toBe(1)
    second.role = 'leader'
    await until('the second one has raised it', () => cluster.featureLevel === 2)
    first.role = 'leader'
    await severalTurns(first)
    for (const steward of stewards) steward.stop()
    // The first leader may have tried repeatedly before it noticed that it had lost leadership.
    expect([...new Set(cluster.raised)]).toEqual(['n1 2', 'n2 2'])
    expect(cluster.raised.filter((raised) => raised === 'n2 2')).toHaveLength(1)
  })
})

test('the feature level is raised by one command, whose actor is the system', async () => {
  const proposed: ProposalInput[] = []
  await proposeFeatureLevel(
    {
      propose: (input) => {
        proposed.push(input)
        return Promise.resolve({ index: 1, outcome: { ok: true, id: '2' } })
      },
    },
    2,
  )
  const [input] = proposed
  expect(proposed).toHaveLength(1)
  expect(input).toMatchObject({ kind: CommandKind.FEATURE_LEVEL_RAISE, actor: SYSTEM_ACTOR })
  expect(fromBinary(FeatureLevelRaiseSchema, input?.payload ?? new Uint8Array()).level).toBe(2)
})

describe('a write that requires a feature level', () => {
  const deskAt = (featureLevel: () => number, sent: Uint8Array[]): LocalProposals =>
    new LocalProposals(
      {
        storeId: new Uint8Array(16),
        boot: 1,
        proposeTimeoutMs: 1000,
        outstandingMax: 10,
        outstandingSpanMax: 10,
        outstandingBytesMax: 10_000,
      },
      {
        selfId: 'n1',
        clock: systemClock,
        hasLeader: () => true,
        featureLevel,
        send: (proposals) => sent.push(...unpackProposals(proposals).map(({ command }) => command)),
      },
    )
  const input = { kind: CommandKind.ENTITY_CREATE, payload: new Uint8Array(1), actor: SYSTEM_ACTOR }

  test('is refused at the proposing controller if the level is not active, and may be repeated', async () => {
    const sent: Uint8Array[] = []
    let inForce = 1
    const desk = deskAt(() => inForce, sent)
    const refusal = await desk.propose({ ...input, level: 2 }).catch((error: unknown) => error)
    expect(refusal).toMatchObject({ code: 'FEATURE_LEVEL_NOT_RAISED' })
    expect(String(refusal)).toContain('it needs feature level 2 and the cluster is at 1')
    expect([desk.count, sent]).toEqual([0, []])
    inForce = 2
    void desk.propose({ ...input, level: 2 }).catch(() => undefined)
    await until('it is sent', () => sent.length === 1)
    desk.close()
    expect(fromBinary(CommandSchema, sent[0] ?? new Uint8Array()).level).toBe(2)
  })

  test('carries the level that it requires, not the newest level that its program supports', async () => {
    const sent: Uint8Array[] = []
    const desk = deskAt(() => 7, sent)
    void desk.propose(input).catch(() => undefined)
    await until('it is sent', () => sent.length === 1)
    desk.close()
    expect(fromBinary(CommandSchema, sent[0] ?? new Uint8Array()).level).toBe(1)
  })
})
