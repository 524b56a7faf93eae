import { create } from '@bufbuild/protobuf'
import { status as Status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Member } from '../../proto/gen/membership_pb.ts'
import { type Hello, PositionSchema } from '../../proto/gen/mesh_pb.ts'
import {
  encodeForwardFrame,
  encodeRaftHello,
  MessageEncoder,
} from '../../src/cluster/message-codec.ts'
import type { MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import { attackMesh, type End } from './mesh-attacker.ts'
import {
  type Authority,
  controllerIdentity,
  createAuthority,
  helloOf,
  memberOf,
  type MeshChanges,
  startMesh,
  storeIdOf,
  type TestMesh,
  until,
} from './mesh-fixture.ts'

// Tests attacks with outdated disks and processes: a removed member, a copied folder, a restored
// backup.
let authority: Authority
let a: MeshIdentity
let b: MeshIdentity
let members: Member[]
const nowhere = '127.0.0.1:1'
const meshes: TestMesh[] = []

beforeAll(async () => {
  authority = await createAuthority()
  a = await controllerIdentity(authority, 'a')
  b = await controllerIdentity(authority, 'b')
  members = [memberOf('a', a, nowhere), memberOf('b', b, nowhere)]
})
afterAll(() => {
  for (const { mesh } of meshes) mesh.stop()
})

async function mesh(
  id: string,
  identity: MeshIdentity,
  among: readonly Member[],
  changes: MeshChanges = {},
): Promise<TestMesh> {
  const started = await startMesh(id, identity, among, changes)
  meshes.push(started)
  return started
}

/** Connects as `b`. */
async function attack(
  victim: TestMesh,
  hello: Partial<Hello>,
  more: readonly Uint8Array[] = [],
  method: 'raft' | 'forward' = 'raft',
): Promise<End> {
  const value = { ...helloOf('b'), ...hello }
  const first =
    method === 'raft' ? encodeRaftHello(value) : encodeForwardFrame({ case: 'hello', value })
  const { caPem } = authority
  return await attackMesh({
    port: victim.port,
    caPem,
    identity: b,
    frames: [first, ...more],
    method,
  })
}

const position = (term: bigint, index: bigint): Partial<Hello> => ({
  currentTerm: term,
  last: create(PositionSchema, { term, index }),
})

const acknowledgement = new MessageEncoder().encode({
  type: 'appendResponse',
  success: true,
  matchIndex: 50,
  hint: { term: 0, index: 0 },
  rejectedIndex: 0,
  from: 'b',
  to: 'a',
  term: 7,
})

test('a removed member with its old certificate is refused, and the refusal contains the index of the current configuration', async () => {
  const victim = await mesh('a', a, members)
  const standing = attack(victim, {}, [], 'forward')
  await until('it is let in', () => victim.mesh.callerOf('b') !== null)
  victim.mesh.setMembers(
    members.filter(({ id }) => id === 'a'),
    41,
  )
  const refusal = { reason: 'not-a-member', configurationIndex: 41 }
  expect(await standing).toMatchObject({ code: Status.PERMISSION_DENIED, refusal })
  expect(await attack(victim, {})).toMatchObject({ code: Status.PERMISSION_DENIED, refusal })
})

test('a member believes the reason for a refusal only if it comes from a member with a pinned key', async () => {
  const victim = await mesh(
    'a',
    a,
    members.filter(({ id }) => id === 'a'),
  )
  victim.mesh.setMembers(
    members.filter(({ id }) => id === 'a'),
    41,
  )
  const at = { ...memberOf('a', a, `127.0.0.1:${victim.port}`) }
  const removed = await mesh('b', b, [at])
  await until('it is reported', () => removed.refusals.length > 0)
  expect(removed.refusals[0]).toMatchObject({
    by: 'a',
    refusal: { reason: 'not-a-member', configurationIndex: 41 },
  })
  const repinned = { ...at, publicKeySha256: new Uint8Array(32) }
  const unsure = await mesh('b', b, [repinned])
  await until('it has tried', () =>
    unsure.log.lines.some((line) => line.includes('key-not-pinned')),
  )
  expect(unsure.refusals).toEqual([])
})

test('a disk that lacks entries that it has acknowledged is refused as rolled back, whether the term or the last index shows this', async () => {
  const victim = await mesh('a', a, members)
  void attack(victim, position(7n, 40n), [acknowledgement])
  await until('the acknowledgement has arrived', () => victim.raft.length > 0)
  victim.mesh.noteMatch('b', 7, 50)
  const refusal = { reason: 'rolled-back' }
  const code = Status.FAILED_PRECONDITION
  expect(await attack(victim, position(6n, 90n))).toMatchObject({ code, refusal })
  expect(await attack(victim, position(7n, 49n))).toMatchObject({ code, refusal })
  const restarted = { boot: 2n, startedAtMs: helloOf('b').startedAtMs + 1n }
  expect(await attack(victim, { ...position(7n, 49n), ...restarted })).toMatchObject({ refusal })
  expect(victim.log.lines.some((line) => line.includes('was rolled back'))).toBe(true)
})

test('if two processes run on copies of one data folder, the later process replaces the earlier one on all streams', async () => {
  const victim = await mesh('a', a, members)
  const later = { boot: 2n, startedAtMs: helloOf('b').startedAtMs + 1n }
  const first = [attack(victim, {}), attack(victim, {}, [], 'forward')]
  await until('the first is let in', () => victim.mesh.callerOf('b') !== null)
  void attack(victim, later)
  for (const end of await Promise.all(first)) expect(end.code).toBe(Status.ABORTED)
  expect(victim.mesh.callerOf('b')).toBeNull()
  expect(await attack(victim, {}, [], 'forward')).toMatchObject({
    code: Status.FAILED_PRECONDITION,
    refusal: { reason: 'superseded' },
  })
})

test('a member does not use a peer whose store ID differs from the one in its member record', async () => {
  const other = { hello: { storeId: storeIdOf('copy') } }
  const answering = await mesh('b', b, members, other)
  const dialler = await mesh('a', a, [memberOf('b', b, `127.0.0.1:${answering.port}`)])
  await until('it is reported', () =>
    dialler.log.lines.some((line) => line.includes('other-store')),
  )
  expect(dialler.links).toEqual([])
})

test('members with different shared options work together, and each member logs the difference only once', async () => {
  const said = (byte: number) => ({ hello: { sharedOptionsSha256: new Uint8Array(32).fill(byte) } })
  const left = await mesh('a', a, [], said(1))
  const right = await mesh('b', b, [], said(2))
  const pair = [
    memberOf('a', a, `127.0.0.1:${left.port}`),
    memberOf('b', b, `127.0.0.1:${right.port}`),
  ]
  for (const one of [left, right]) one.mesh.setMembers(pair)
  await until('both are connected', () =>
    [left, right].every(({ mesh: one }) => one.peers().every(({ isConnected }) => isConnected)),
  )
  for (const [one, other] of [
    [left, 'b'],
    [right, 'a'],
  ] as const) {
    const told = one.log.lines.filter((line) => line.includes('must be equal on every controller'))
    expect(told).toHaveLength(1)
    expect(told[0]).toMatch(new RegExp(`^warn ${other} has different values`))
  }
})

test('connections continue when a member gets new credentials, and are replaced once its new key is pinned', async () => {
  const next = await controllerIdentity(authority, 'b')
  const left = await mesh('a', a, [])
  const right = await mesh('b', b, [])
  const addressed = (identity: MeshIdentity): Member[] => [
    memberOf('a', a, `127.0.0.1:${left.port}`),
    memberOf('b', identity, `127.0.0.1:${right.port}`),
  ]
  for (const one of [left, right]) one.mesh.setMembers(addressed(b))
  const areConnected = (): boolean =>
    [left, right].every(({ mesh: one }) => one.peers().every(({ isConnected }) => isConnected))
  await until('both are connected', areConnected)
  const before = left.mesh.peers()[0]?.leafPem
  right.mesh.setIdentity(next)
  expect(areConnected()).toBe(true)
  expect(right.links).toHaveLength(1)
  // Once the new key is pinned, connections with the old key are closed, and both members reconnect
  // with the new key.
  for (const one of [left, right]) one.mesh.setMembers(addressed(next))
  await until('both are connected by the new key', () => {
    const now = left.mesh.peers()[0]?.leafPem
    return areConnected() && now !== before && now !== ''
  })
})
