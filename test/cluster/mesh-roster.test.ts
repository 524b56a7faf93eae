import { create, toBinary } from '@bufbuild/protobuf'
import { beforeAll, expect, test } from 'vitest'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { type Roster, RosterSchema } from '../../proto/gen/mesh_pb.ts'
import { AddressBook } from '../../src/cluster/mesh/address-book.ts'
import type { PeerRefusalReason } from '../../src/cluster/mesh/handshake.ts'
import type { ConsensusThreadEvent } from '../../src/cluster/thread-channel.ts'
import type { MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import { MembershipCache } from '../../src/cluster/mesh/membership-cache.ts'
import { RollbackDetector } from '../../src/cluster/mesh/rollback-detector.ts'
import type { MembershipRecord } from '../../src/ports/membership-cache.ts'
import { configurationFromRecord } from '../../src/raft/configuration.ts'
import type { CoreStatus } from '../../src/raft/effects.ts'
import {
  CLUSTER_ID,
  controllerIdentity,
  createAuthority,
  memberOf,
  storeIdOf,
} from './mesh-fixture.ts'

const identities = new Map<string, MeshIdentity>()

beforeAll(async () => {
  const authority = await createAuthority()
  for (const id of ['a', 'b', 'c', 'd']) identities.set(id, await controllerIdentity(authority, id))
})

function identityOf(id: string): MeshIdentity {
  const identity = identities.get(id)
  if (identity === undefined) throw new Error(`no identity for ${id}`)
  return identity
}

/** Members as text; `a!` is the member `a` with another disk. */
function recordOf(names: string) {
  const members = names.split('').flatMap((id, at) => {
    if (id === '!') return []
    const member = memberOf(id, identityOf(id), `${id}.test:1`)
    return [names[at + 1] === '!' ? { ...member, storeId: storeIdOf('other') } : member]
  })
  return create(ConfigurationSchema, { members })
}

/** @param before the committed configuration, while `names` at `index` is not committed. */
function statusOf(
  names: string,
  index: number,
  before: { readonly names: string; readonly index: number } | null = null,
): CoreStatus {
  const record = recordOf(names)
  return {
    role: 'follower',
    term: 1,
    leader: null,
    configuration: configurationFromRecord(record),
    configurationRecord: record,
    configurationIndex: index,
    isConfigurationCommitted: before === null,
    committedConfigurationIndex: before?.index ?? index,
    committedConfigurationRecord: before === null ? record : recordOf(before.names),
  }
}

function frameOf(names: string, index: number): Roster {
  const configuration = toBinary(ConfigurationSchema, recordOf(names))
  return create(RosterSchema, { configuration, index: BigInt(index) })
}

interface Stage {
  readonly keeper: MembershipCache
  readonly events: ConsensusThreadEvent[]
  readonly sent: { index: number }[]
  nowMs: number
  /** IDs of the peers that the member accepts. */
  readonly letIn: () => string
  readonly told: () => string[]
}

function stage(status: CoreStatus, heard: MembershipRecord | null = null): Stage {
  const events: ConsensusThreadEvent[] = []
  const sent: { index: number }[] = []
  const identity = identityOf('a')
  const advertise = 'a.test:1'
  const book = new AddressBook({
    selfId: 'a',
    clusterId: CLUSTER_ID,
    advertise,
    identity,
    nowMs: 1,
  })
  const found: { nowMs: number } = { nowMs: 0 }
  const keeper = new MembershipCache(status, heard, {
    selfId: 'a',
    storeId: storeIdOf('a'),
    generation: 1,
    book,
    witness: new RollbackDetector(1),
    monotonicMs: () => found.nowMs,
    onView: ({ members }) => book.setMembers(new Map(members.map((one) => [one.id, one]))),
    broadcast: (frame) => {
      if (frame.case === 'roster') sent.push({ index: Number(frame.value.index) })
    },
    post: (event) => events.push(event),
  })
  return Object.assign(found, {
    keeper,
    events,
    sent,
    letIn: () =>
      keeper.view.members
        .map(({ id }) => id)
        .sort()
        .join(''),
    told: () =>
      events.flatMap((event) =>
        event.type === 'selfRefused' ? [`${event.reason} ${event.by} ${event.index}`] : [],
      ),
  })
}

test('a membership change takes effect for new members when it is logged, and for removed members when it is committed', () => {
  const { keeper, letIn } = stage(statusOf('abc', 5))
  expect(letIn()).toBe('abc')
  keeper.onStatus(statusOf('abd', 6, { names: 'abc', index: 5 }))
  expect(letIn()).toBe('abcd')
  expect(keeper.view.committedIndex).toBe(5)
  keeper.onStatus(statusOf('abd', 6))
  expect(letIn()).toBe('abd')
  expect(keeper.view.committedIndex).toBe(6)
})

test('when a controller starts, it still accepts members whose removal is not yet committed', () => {
  const { keeper, letIn } = stage(statusOf('ab', 6, { names: 'abc', index: 5 }))
  expect(letIn()).toBe('abc')
  keeper.onStatus(statusOf('ab', 6))
  expect(letIn()).toBe('ab')
})

test('a member whose log lags accepts exactly the members in the newest committed configuration that it received from a peer', () => {
  const { keeper, letIn } = stage(statusOf('abc', 5))
  keeper.take('b', frameOf('abd', 9))
  expect(letIn()).toBe('abd')
  expect(keeper.view.committedIndex).toBe(9)
  // Older entries in the log of this controller must not restore removed members.
  keeper.onStatus(statusOf('abc', 7))
  expect(letIn()).toBe('abd')
  keeper.onStatus(statusOf('abd', 9))
  keeper.onStatus(statusOf('abcd', 11))
  expect(letIn()).toBe('abcd')
})

test('an older, malformed or empty configuration is ignored', () => {
  const { keeper, letIn } = stage(statusOf('abc', 5))
  keeper.take('b', frameOf('abd', 5))
  keeper.take('b', frameOf('abd', 4))
  keeper.take('b', create(RosterSchema, { configuration: Uint8Array.of(255, 255), index: 90n }))
  keeper.take('b', create(RosterSchema, { configuration: new Uint8Array(0), index: 91n }))
  expect(letIn()).toBe('abc')
  expect(keeper.view.committedIndex).toBe(5)
})

test('a member’s uncommitted configuration is replaced by a committed configuration with the same index', () => {
  const { keeper, letIn } = stage(statusOf('abc', 5))
  keeper.onStatus(statusOf('ab', 6, { names: 'abc', index: 5 }))
  keeper.take('b', frameOf('abcd', 6))
  expect(letIn()).toBe('abcd')
})

test('a new configuration is sent to the peers immediately, and to the main thread at most once a second', () => {
  const scene = stage(statusOf('abc', 5))
  const rosters = () => scene.events.filter(({ type }) => type === 'roster').length
  scene.keeper.flush()
  scene.keeper.flush()
  expect([scene.sent.length, rosters()]).toEqual([1, 1])
  scene.keeper.take('b', frameOf('abd', 9))
  scene.keeper.flush()
  expect(scene.sent.at(-1)).toEqual({ index: 9 })
  expect(rosters()).toBe(1)
  scene.nowMs = 1000
  scene.keeper.flush()
  expect(rosters()).toBe(2)
})

const refusedFor = (
  scene: Stage,
  reason: PeerRefusalReason,
  configurationIndex: number,
): string[] => {
  scene.keeper.onRefused('b', { reason, configurationIndex, generation: 1 })
  return scene.told()
}

test('a refusal means that this member was removed only if the refusal is based on a later configuration than one that contains this member’s disk', () => {
  expect(refusedFor(stage(statusOf('abc', 5)), 'not-a-member', 6)).toEqual(['removed b 6'])
  expect(refusedFor(stage(statusOf('abc', 5)), 'not-a-member', 5)).toEqual(['not-yet-a-member b 5'])
  // The controller is being admitted, and the peer that refuses it only lags behind.
  expect(refusedFor(stage(statusOf('bc', 5)), 'not-a-member', 9)).toEqual(['not-yet-a-member b 9'])
  expect(refusedFor(stage(statusOf('a!bc', 5)), 'other-store', 9)).toEqual(['not-yet-a-member b 9'])
  expect(refusedFor(stage(statusOf('abc', 5)), 'other-store', 9)).toEqual(['other-store b 9'])
  expect(refusedFor(stage(statusOf('abc', 5)), 'rolled-back', 0)).toEqual(['rolled-back b 0'])
  expect(refusedFor(stage(statusOf('abc', 5)), 'other-cluster', 9)).toEqual([])
})

test('a refusal from a newer generation means, whatever its reason, that the cluster was recovered without this member', () => {
  for (const reason of ['not-a-member', 'other-generation', 'other-store'] as const) {
    const scene = stage(statusOf('abc', 5))
    scene.keeper.onRefused('b', { reason, configurationIndex: 2, generation: 2 })
    expect(scene.told()).toEqual(['fenced b 2'])
  }
  const ahead = stage(statusOf('abc', 5))
  ahead.keeper.onRefused('b', { reason: 'other-generation', configurationIndex: 9, generation: 0 })
  expect(ahead.told(), 'an older roster is ignored').toEqual([])
})

test('a repeated refusal is reported at most once a second', () => {
  const scene = stage(statusOf('abc', 5))
  expect(refusedFor(scene, 'not-a-member', 6)).toHaveLength(1)
  expect(refusedFor(scene, 'not-a-member', 6)).toHaveLength(1)
  scene.nowMs = 1000
  expect(refusedFor(scene, 'not-a-member', 6)).toHaveLength(2)
})

test('a member detects its own removal in its log or from a peer, and ignores the removal of an earlier disk with its id', () => {
  const removed = stage(statusOf('abc', 5))
  removed.keeper.onStatus(statusOf('bc', 6, { names: 'abc', index: 5 }))
  expect(removed.told()).toEqual([])
  removed.keeper.onStatus(statusOf('bc', 6))
  expect(removed.told()).toEqual(['removed a 6'])
  const told = stage(statusOf('abc', 5))
  told.keeper.take('b', frameOf('a!bc', 9))
  expect(told.told()).toEqual(['other-store b 9'])
  // A new member replays the log entries that admitted and removed an earlier disk with its ID.
  const joiner = stage(statusOf('bc', 0))
  for (const [at, names] of ['a!bc', 'bc', 'abc'].entries()) {
    joiner.keeper.onStatus(statusOf(names, at + 1))
  }
  expect(joiner.told()).toEqual([])
})

test('a member uses the member list stored by an earlier run until its own log has caught up', () => {
  const configuration = toBinary(ConfigurationSchema, recordOf('abd'))
  const { keeper, letIn } = stage(statusOf('abc', 5), {
    configuration,
    index: 9,
    claims: [],
    marks: [],
  })
  expect(letIn()).toBe('abd')
  keeper.onStatus(statusOf('abcd', 12))
  expect(letIn()).toBe('abcd')
})
