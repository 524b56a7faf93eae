import { status as Status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from 'node:tls'

import { create } from '@bufbuild/protobuf'

import type { Member } from '../../proto/gen/membership_pb.ts'
import {
  type ForwardFrame,
  type Hello,
  ProposeSchema,
  ReadIndexRequestSchema,
  ReadIndexResponseSchema,
  RosterSchema,
} from '../../proto/gen/mesh_pb.ts'
import {
  encodeForwardFrame,
  encodeRaftHello,
  MessageEncoder,
} from '../../src/cluster/message-codec.ts'
import { MESH_FRAME_BYTES_MAX, type MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import { controllerSpiffeId } from '../../src/pki/spiffe.ts'
import { attackMesh, type End } from './mesh-attacker.ts'
import {
  type Authority,
  controllerIdentity,
  createAuthority,
  helloOf,
  issueIdentity,
  memberOf,
  startMesh,
  storeIdOf,
  type TestMesh,
  TRUST_DOMAIN,
  until,
} from './mesh-fixture.ts'

// All tests attack one listening member over real TLS. `b` is a member that does not run.
let authority: Authority
let a: MeshIdentity
let b: MeshIdentity
let members: Member[]
let victim: TestMesh
const nowhere = '127.0.0.1:1'

beforeAll(async () => {
  authority = await createAuthority()
  a = await controllerIdentity(authority, 'a')
  b = await controllerIdentity(authority, 'b')
  members = [memberOf('a', a, nowhere), memberOf('b', b, nowhere)]
  victim = await startMesh('a', a, members)
})
afterAll(() => victim.mesh.stop())

/** Attacks the victim. */
async function attack(
  identity: MeshIdentity | null,
  frames: readonly Uint8Array[],
  method: 'raft' | 'forward' = 'raft',
): Promise<End> {
  const { caPem } = authority
  return await attackMesh({ port: victim.port, caPem, identity, frames, method })
}

const hello = (changes: Partial<Hello> = {}): Uint8Array =>
  encodeRaftHello({ ...helloOf('b'), ...changes })

const vote = new MessageEncoder().encode({
  type: 'voteRequest',
  pre: true,
  last: { term: 2, index: 7 },
  transfer: false,
  from: 'somebody else',
  to: 'a',
  term: 3,
})

async function impostor(uris: readonly string[], commonName = 'b'): Promise<MeshIdentity> {
  return await issueIdentity(authority, { commonName, uris })
}

test('the mesh sends its Hello to an authenticated member, and identifies the sender of a message by the certificate even if the message names another sender', async () => {
  const before = victim.raft.length
  const end = attack(b, [hello(), vote])
  await until('the vote request arrives', () => victim.raft.length > before)
  expect(victim.raft.at(-1)).toMatchObject({
    from: 'b',
    content: { kind: 'message', message: { type: 'voteRequest', from: 'b', to: 'a', term: 3 } },
  })
  victim.mesh.setMembers(members.filter(({ id }) => id === 'a'))
  expect(await end).toMatchObject({ code: Status.PERMISSION_DENIED, frames: 1 })
  victim.mesh.setMembers(members)
})

test('the mesh accepts a member with a newer release, and ignores its unknown frames', async () => {
  const before = victim.raft.length
  // Field 15 of the frame, which this release does not know.
  const unknown = Uint8Array.of(0x7a, 0x02, 0x01, 0x02)
  const end = attack(b, [hello({ version: '99.0.0', featureLevel: 99 }), unknown, vote])
  await until('the frame after the unknown one arrives', () => victim.raft.length > before)
  victim.mesh.setMembers(members.filter(({ id }) => id === 'a'))
  expect((await end).frames).toBe(1)
  victim.mesh.setMembers(members)
})

interface Attack {
  readonly name: string
  readonly identity?: () => Promise<MeshIdentity> | MeshIdentity
  readonly frames?: readonly Uint8Array[]
  readonly method?: 'forward'
  /** Absent if the connection ends with the handshake, without a status. */
  readonly code?: Status
  readonly reason: RegExp
}

const attacks: readonly Attack[] = [
  {
    name: 'a member of another cluster',
    frames: [hello({ clusterId: 'c2' })],
    code: Status.FAILED_PRECONDITION,
    reason: /cluster "c2"/,
  },
  {
    name: 'a member of another generation of the cluster',
    frames: [hello({ generation: 2 })],
    code: Status.FAILED_PRECONDITION,
    reason: /generation 2/,
  },
  {
    name: 'a member with the id of another in its Hello',
    frames: [hello({ nodeId: 'a' })],
    code: Status.FAILED_PRECONDITION,
    reason: /identifies itself as "a"/,
  },
  {
    name: 'a member whose data folder was wiped',
    frames: [hello({ storeId: storeIdOf('new') })],
    code: Status.FAILED_PRECONDITION,
    reason: /data folder/,
  },
  {
    name: 'a member without a store id',
    frames: [hello({ storeId: new Uint8Array(0) })],
    code: Status.FAILED_PRECONDITION,
    reason: /data folder/,
  },
  {
    name: 'a leaf of this CA for an identity, not a controller',
    identity: () => impostor([`spiffe://${TRUST_DOMAIN}/identity/b`]),
    reason: /names no controller/,
  },
  {
    name: 'a leaf of this CA for a router',
    identity: () => impostor([`spiffe://${TRUST_DOMAIN}/router/b`]),
    reason: /names no controller/,
  },
  {
    name: 'a leaf of another trust domain',
    identity: () => impostor([controllerSpiffeId('other.flotilla', 'b')]),
    reason: /names no controller/,
  },
  {
    name: 'a leaf with two SPIFFE ids',
    identity: () => impostor(['a', 'b'].map((id) => controllerSpiffeId(TRUST_DOMAIN, id))),
    reason: /names no controller/,
  },
  {
    name: 'a leaf without a SPIFFE id',
    identity: () => impostor([]),
    reason: /names no controller/,
  },
  {
    name: 'a leaf for a controller that is not a member',
    identity: () => controllerIdentity(authority, 'z'),
    code: Status.PERMISSION_DENIED,
    reason: /not a member of this cluster/,
  },
  {
    name: 'a roster from a controller that is not a member',
    identity: () => controllerIdentity(authority, 'z'),
    frames: [
      encodeForwardFrame({ case: 'hello', value: helloOf('z') }),
      encodeForwardFrame({ case: 'roster', value: create(RosterSchema, { index: 99n }) }),
    ],
    method: 'forward',
    code: Status.PERMISSION_DENIED,
    reason: /not a member of this cluster/,
  },
  {
    name: 'a leaf of this CA for the right member with a key that is not pinned',
    identity: () => controllerIdentity(authority, 'b'),
    code: Status.PERMISSION_DENIED,
    reason: /not the one pinned/,
  },
  {
    name: 'a copy of the controller’s own identity',
    identity: () => a,
    code: Status.PERMISSION_DENIED,
    reason: /this controller itself/,
  },
  {
    name: 'a member that sends a message before its Hello',
    frames: [vote],
    code: Status.INVALID_ARGUMENT,
    reason: /no Hello/,
  },
  {
    name: 'a member that proposes before its Hello',
    frames: [encodeForwardFrame({ case: 'propose', value: create(ProposeSchema, {}) })],
    method: 'forward',
    code: Status.INVALID_ARGUMENT,
    reason: /no Hello/,
  },
  {
    name: 'a member whose Hello is too large',
    frames: [hello({ version: 'x'.repeat(10_000) })],
    code: Status.INVALID_ARGUMENT,
    reason: /Hello frame is too large/,
  },
]

test.each(attacks.map((attack) => [attack.name, attack] as const))(
  'the mesh refuses %s, and logs the reason as a warning',
  async (_name, case_) => {
    const { identity, frames, method, code = Status.UNAVAILABLE, reason } = case_
    const raftBefore = victim.raft.length
    const linesBefore = victim.log.lines.length
    const end = await attack((await identity?.()) ?? b, frames ?? [hello(), vote], method)
    expect(end).toMatchObject({ code, frames: 0 })
    if (case_.code !== undefined) expect(end.details).toMatch(reason)
    expect(victim.raft.length).toBe(raftBefore)
    // A refusal of the same peer for the same reason is logged once a minute; an earlier test may
    // have logged it.
    const told = victim.log.lines.slice(linesBefore)
    expect(told.filter((line) => line.startsWith('warn')).length).toBeLessThanOrEqual(1)
    expect(victim.log.lines.some((line) => line.startsWith('warn') && reason.test(line))).toBe(true)
  },
)

test('repeated refusals of a peer by the mesh are logged once', async () => {
  const wrong = [hello({ clusterId: 'again' })]
  await attack(b, wrong)
  const before = victim.log.lines.filter((line) => line.includes('other-cluster')).length
  for (let i = 0; i < 5; i += 1) await attack(b, wrong)
  expect(victim.log.lines.filter((line) => line.includes('other-cluster')).length).toBe(before)
})

test('a second Hello closes the mesh stream', async () => {
  for (const method of ['raft', 'forward'] as const) {
    const first =
      method === 'raft' ? hello() : encodeForwardFrame({ case: 'hello', value: helloOf('b') })
    const end = await attack(b, [first, first], method)
    expect(end).toMatchObject({ code: Status.INVALID_ARGUMENT, details: 'it sent Hello twice' })
  }
})

test('a malformed frame, or entries with a gap, close the mesh stream', async () => {
  const garbage = Uint8Array.of(0xff, 0xff, 0xff)
  expect(await attack(b, [hello(), garbage])).toMatchObject({ code: Status.INVALID_ARGUMENT })
  const gap = new MessageEncoder().encode({
    type: 'appendRequest',
    previous: { term: 1, index: 1 },
    commit: 0,
    entries: [{ index: 3, term: 1, timeMs: 1, type: 'noop', data: new Uint8Array(0) }],
    from: 'b',
    to: 'a',
    term: 1,
  })
  const before = victim.raft.length
  expect(await attack(b, [hello(), gap])).toMatchObject({ code: Status.INVALID_ARGUMENT })
  expect(victim.raft.length).toBe(before)
})

test('a mesh frame above the size limit closes the stream and is not delivered', async () => {
  const before = victim.raft.length
  const end = await attack(b, [hello(), new Uint8Array(MESH_FRAME_BYTES_MAX + 1)])
  expect(end.code).toBe(Status.RESOURCE_EXHAUSTED)
  expect(victim.raft.length).toBe(before)
})

test('the mesh rejects a TLS client without a certificate, with a certificate of another CA, or below TLS 1.3', async () => {
  const other = await controllerIdentity(await createAuthority(), 'b')
  const before = victim.raft.length
  for (const identity of [null, other]) {
    expect((await attack(identity, [hello(), vote])).code).toBe(Status.UNAVAILABLE)
  }
  const socket = connect({
    host: '127.0.0.1',
    port: victim.port,
    ca: authority.caPem,
    cert: b.certificatePem,
    key: b.privateKeyPem,
    maxVersion: 'TLSv1.2',
    checkServerIdentity: () => undefined,
  })
  const outcome = await new Promise<string>((resolve) => {
    socket.on('secureConnect', () => resolve('connected'))
    socket.on('error', () => resolve('refused'))
  })
  socket.destroy()
  expect(outcome).toBe('refused')
  expect(victim.raft.length).toBe(before)
})

test('a member does not use a server at the address of a member if the server has another key or is another member', async () => {
  // The victim expects `b` at an address where the victim `a` itself listens, and at one where a
  // false `b` listens.
  const falseB = await controllerIdentity(authority, 'b')
  const pinned = memberOf('b', b, nowhere)
  const impostorMesh = await startMesh('b', falseB, [memberOf('a', a, nowhere)])
  const caller = await startMesh('c', await controllerIdentity(authority, 'c'), [
    { ...pinned, address: `127.0.0.1:${impostorMesh.port}` },
  ])
  const astray = await startMesh('c', await controllerIdentity(authority, 'c'), [
    { ...pinned, address: `127.0.0.1:${victim.port}` },
  ])
  try {
    await until('the false key is reported', () =>
      caller.log.lines.some((line) => line.includes('key-not-pinned')),
    )
    await until('the wrong member is reported', () =>
      astray.log.lines.some((line) => line.includes('expected b at this address')),
    )
    expect(caller.links).toEqual([])
    expect(astray.links).toEqual([])
    expect(impostorMesh.raft).toEqual([])
  } finally {
    for (const { mesh } of [caller, astray, impostorMesh]) mesh.stop()
  }
})

test('two members connect, exchange frames in both directions, and detect when the other member disconnects', async () => {
  const x = await startPair()
  try {
    await until('both are connected', () => isConnected(x.left, 'r') && isConnected(x.right, 'l'))
    expect(x.left.mesh.peers()).toMatchObject([{ id: 'r', hello: { version: '1.0.0' } }])
    expect(x.left.mesh.peers()[0]?.leafPem).toContain('BEGIN CERTIFICATE')
    const request = { case: 'readIndexRequest', value: create(ReadIndexRequestSchema, { id: 7n }) }
    expect(x.left.mesh.forward('r', request as ForwardFrame['frame'])).toBe(true)
    await until('the request arrives', () => x.right.forward.length > 0)
    expect(x.right.forward[0]).toMatchObject({ from: 'l', isAnswer: false })
    x.right.mesh.answer('l', {
      case: 'readIndexResponse',
      value: create(ReadIndexResponseSchema, { id: 7n, index: 9n }),
    })
    await until('the answer arrives', () => x.left.forward.length > 0)
    expect(x.left.forward[0]).toMatchObject({ from: 'r', isAnswer: true })
    x.right.mesh.stop()
    await until('the loss is noticed', () => !isConnected(x.left, 'r'), 3000)
    await until('the link is reported as lost', () => x.left.links.at(-1)?.isReady === false, 3000)
    expect(x.left.mesh.forward('r', request as ForwardFrame['frame'])).toBe(false)
  } finally {
    x.left.mesh.stop()
    x.right.mesh.stop()
  }
})

function isConnected(from: TestMesh, to: string): boolean {
  return from.mesh.peers().some((peer) => peer.id === to && peer.isConnected)
}

async function startPair(): Promise<{ left: TestMesh; right: TestMesh }> {
  const identities = {
    l: await controllerIdentity(authority, 'l'),
    r: await controllerIdentity(authority, 'r'),
  }
  const left = await startMesh('l', identities.l, [])
  const right = await startMesh('r', identities.r, [])
  const pair = [
    memberOf('l', identities.l, `127.0.0.1:${left.port}`),
    memberOf('r', identities.r, `127.0.0.1:${right.port}`),
  ]
  left.mesh.setMembers(pair)
  right.mesh.setMembers(pair)
  return { left, right }
}
