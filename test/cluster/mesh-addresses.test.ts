import { KeyObject, webcrypto } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { clone } from '@bufbuild/protobuf'
import { beforeAll, expect, test } from 'vitest'

import type { Member } from '../../proto/gen/membership_pb.ts'
import { type AddressClaim, AddressClaimSchema } from '../../proto/gen/mesh_pb.ts'
import { AddressBook } from '../../src/cluster/mesh/address-book.ts'
import type { MeshIdentity } from '../../src/cluster/mesh/mesh-service.ts'
import { X509CertificateGenerator } from '../../src/pki/authority/x509.ts'
import {
  CLUSTER_ID,
  controllerIdentity,
  createAuthority,
  memberOf,
  startMesh,
  type TestMesh,
  until,
} from './mesh-fixture.ts'
import { nameServer } from '../support/name-server.ts'
import { freePort } from '../support/ports.ts'

let a: MeshIdentity
let b: MeshIdentity
let stranger: MeshIdentity
let members: Member[]

beforeAll(async () => {
  const authority = await createAuthority()
  a = await controllerIdentity(authority, 'a')
  b = await controllerIdentity(authority, 'b')
  stranger = await controllerIdentity(authority, 'b')
  members = [memberOf('a', a, 'a.test:1'), memberOf('b', b, 'b.test:1')]
})

function bookOf(
  selfId: string,
  identity: MeshIdentity,
  advertise: string,
  nowMs = 1000,
  clusterId = CLUSTER_ID,
): AddressBook {
  const book = new AddressBook({ selfId, clusterId, advertise, identity, nowMs })
  book.setMembers(new Map(members.map((member) => [member.id, member])))
  return book
}

function changed(claim: AddressClaim, changes: Partial<AddressClaim>): AddressClaim {
  return Object.assign(clone(AddressClaimSchema, claim), changes)
}

test('an address claim from any peer is accepted if the pinned key signed it, and the newest claim takes precedence', () => {
  const book = bookOf('a', a, 'a.new:1')
  const [older, newer] = [bookOf('b', b, 'b.old:1', 2000), bookOf('b', b, 'b.new:1', 3000)]
  expect(book.addressesOf('b')).toEqual(['b.test:1'])
  expect(book.take(newer.own)).toBe(true)
  expect(book.take(newer.own)).toBe(false)
  expect(book.take(older.own)).toBe(false)
  expect(book.addressesOf('b')).toEqual(['b.new:1', 'b.test:1'])
  expect(book.claims().map(({ nodeId }) => nodeId)).toEqual(['a', 'b'])
})

test('an address claim with another key, name or cluster, or a modified claim, is rejected', () => {
  const book = bookOf('a', a, 'a.new:1')
  const { own } = bookOf('b', b, 'b.new:1', 2000)
  const refused = [
    bookOf('b', stranger, 'evil.test:1', 9000).own,
    bookOf('b', b, 'b.new:1', 2000, 'other').own,
    changed(own, { address: 'evil.test:1' }),
    changed(own, { issuedAtMs: 9000n }),
    changed(own, { nodeId: 'a' }),
    changed(own, { nodeId: 'z' }),
    changed(own, { publicKeySpki: Uint8Array.of(1) }),
    changed(own, { signature: new Uint8Array(0) }),
    // A record with the member's public key and a signature of another key.
    changed(bookOf('b', stranger, 'evil.test:1', 9000).own, { publicKeySpki: own.publicKeySpki }),
    bookOf('b', b, 'no address', 9000).own,
  ]
  expect(refused.map((claim) => book.take(claim))).toEqual(refused.map(() => false))
  expect(book.addressesOf('b')).toEqual(['b.test:1'])
  expect(book.take(own)).toBe(true)
})

test('address claims (addresses signed by a member) of former members and of replaced keys are discarded', () => {
  const book = bookOf('a', a, 'a.new:1')
  expect(book.take(bookOf('b', b, 'b.new:1', 2000).own)).toBe(true)
  const repinned = [members[0], memberOf('b', stranger, 'b.test:1')]
  book.setMembers(new Map(repinned.flatMap((one) => (one === undefined ? [] : [[one.id, one]]))))
  expect(book.addressesOf('b')).toEqual(['b.test:1'])
  book.setMembers(new Map())
  expect(book.addressesOf('b')).toEqual([])
})

test('a member replaces an address claim that it signed while its clock was ahead, so that its current address applies', () => {
  const ahead = bookOf('a', a, 'a.old:1', 9_000_000)
  const book = bookOf('a', a, 'a.new:1', 1000)
  expect(book.take(ahead.own)).toBe(true)
  const other = bookOf('b', b, 'b.new:1')
  expect(other.take(ahead.own)).toBe(true)
  expect(other.take(book.own)).toBe(true)
  expect(other.addressesOf('a')[0]).toBe('a.new:1')
})

test('an address claim can also be signed and verified with an RSA key', async () => {
  const algorithm = {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    publicExponent: Uint8Array.of(1, 0, 1),
    modulusLength: 2048,
  }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const leaf = await X509CertificateGenerator.createSelfSigned({
    keys,
    name: 'CN=b',
    signingAlgorithm: algorithm,
  })
  const privateKeyPem = KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' })
  const rsa = {
    certificatePem: leaf.toString('pem'),
    privateKeyPem: String(privateKeyPem),
    caPem: '',
  }
  const book = bookOf('a', a, 'a.new:1')
  const { own } = bookOf('b', rsa, 'b.rsa:1', 5000)
  expect(book.take(own)).toBe(false)
  book.setMembers(new Map([['b', memberOf('b', rsa, 'b.test:1')]]))
  expect(book.take(changed(own, { address: 'evil.test:1' }))).toBe(false)
  expect(book.take(own)).toBe(true)
})

test('members whose addresses have all changed find each other through one DNS name', async () => {
  const port = await freePort()
  const names = await nameServer(['127.0.0.11', '127.0.0.12', '127.0.0.13'])
  const common = { seeds: [`cluster.test:${port}`], resolvers: [names.at] }
  const gone = members.map((member) => ({ ...member, address: '127.0.0.1:1' }))
  const left = await startMesh('a', a, gone, { ...common, bind: `127.0.0.11:${port}` })
  const right = await startMesh('b', b, gone, { ...common, bind: `127.0.0.12:${port}` })
  try {
    await until('both see each other', () =>
      [left, right].every(({ mesh }) => mesh.peers().every(({ isConnected }) => isConnected)),
    )
    expect(left.mesh.peers()).toMatchObject([{ id: 'b', address: `127.0.0.12:${port}` }])
  } finally {
    left.mesh.stop()
    right.mesh.stop()
    names.close()
  }
})

test('a member that was found through a seed is shown with the name that it advertises', async () => {
  const [one, two] = [await freePort(), await freePort()]
  const names = await nameServer(['127.0.0.1'])
  const gone = members.map((member) => ({ ...member, address: '127.0.0.1:1' }))
  const at = (id: string, port: number) => ({
    resolvers: [names.at],
    seeds: [`cluster.test:${one}`, `cluster.test:${two}`],
    bind: `127.0.0.1:${port}`,
    advertise: `${id}.flotilla.test:${port}`,
  })
  const left = await startMesh('a', a, gone, at('a', one))
  const right = await startMesh('b', b, gone, at('b', two))
  const ends = [left, right]
  try {
    await until('both see each other', () =>
      ends.every(({ mesh }) => mesh.peers().every(({ isConnected }) => isConnected)),
    )
    expect(ends.flatMap(({ mesh }) => mesh.peers().map(({ address }) => address))).toEqual([
      `b.flotilla.test:${two}`,
      `a.flotilla.test:${one}`,
    ])
  } finally {
    for (const { mesh } of ends) mesh.stop()
    names.close()
  }
})

test('a DNS name in a member record is resolved by the configured resolvers, and each resolved address is tried', async () => {
  const port = await freePort()
  const names = await nameServer(['127.0.0.13', '127.0.0.11', '127.0.0.12'])
  const named = members.map((member) => ({
    ...member,
    address: `${member.id}.flotilla.test:${port}`,
  }))
  const resolvers = [names.at]
  const left = await startMesh('a', a, named, { resolvers, bind: `127.0.0.11:${port}` })
  const right = await startMesh('b', b, named, { resolvers, bind: `127.0.0.12:${port}` })
  try {
    await until('both see each other', () =>
      [left, right].every(({ mesh }) => mesh.peers().every(({ isConnected }) => isConnected)),
    )
    expect(left.mesh.peers()).toMatchObject([{ id: 'b', address: `b.flotilla.test:${port}` }])
  } finally {
    left.mesh.stop()
    right.mesh.stop()
    names.close()
  }
})

test('members that restart while no DNS server responds find each other at their last known addresses', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-names-'))
  const port = await freePort()
  const names = await nameServer(['127.0.0.11', '127.0.0.12'])
  const named = members.map((member) => ({
    ...member,
    address: `${member.id}.flotilla.test:${port}`,
  }))
  const start = async (id: string, identity: MeshIdentity, host: string) =>
    await startMesh(id, identity, named, {
      resolvers: [names.at],
      bind: `${host}:${port}`,
      lastAddressesFile: join(folder, `${id}.json`),
    })
  const both = async () => [await start('a', a, '127.0.0.11'), await start('b', b, '127.0.0.12')]
  const connected = async (meshes: readonly TestMesh[]): Promise<void> =>
    await until('both see each other', () =>
      meshes.every(({ mesh }) => mesh.peers().every(({ isConnected }) => isConnected)),
    )
  const first = await both()
  await connected(first)
  for (const { mesh } of first) mesh.stop()
  for (const id of ['a', 'b']) {
    await until('the file is written', () => existsSync(join(folder, `${id}.json`)))
  }
  names.close()
  const second = await both()
  let alone: TestMesh | null = null
  try {
    await connected(second)
    for (const { mesh } of second) mesh.stop()
    alone = await start('a', a, '127.0.0.11')
    const { lines } = alone.log
    await until('the reason is logged', () =>
      lines.some((line) =>
        /no connection to b at b\.flotilla\.test:\d+: b\.flotilla\.test: the name server did not answer; trying the last addresses 127\.0\.0\.11, 127\.0\.0\.12: connect ECONNREFUSED/.test(
          line,
        ),
      ),
    )
    expect(lines.join()).not.toContain('it sent no Hello')
  } finally {
    alone?.mesh.stop()
    for (const { mesh } of second) mesh.stop()
    rmSync(folder, { recursive: true })
  }
})

test('a DNS name in an address claim is resolved by the configured resolvers', async () => {
  const [one, two] = [await freePort(), await freePort()]
  const names = await nameServer(['127.0.0.1'])
  const resolvers = [names.at]
  // Only the record of `a` has an address that works; `b` reports its own address.
  const gone = members.map((member) =>
    member.id === 'a'
      ? { ...member, address: `a.flotilla.test:${one}` }
      : { ...member, address: '127.0.0.1:1' },
  )
  const at = (id: string, port: number) => ({
    resolvers,
    bind: `127.0.0.1:${port}`,
    advertise: `${id}.flotilla.test:${port}`,
  })
  const left = await startMesh('a', a, gone, at('a', one))
  const right = await startMesh('b', b, gone, at('b', two))
  try {
    await until('both see each other', () =>
      [left, right].every(({ mesh }) => mesh.peers().every(({ isConnected }) => isConnected)),
    )
    expect(left.mesh.peers()).toMatchObject([{ id: 'b', address: `b.flotilla.test:${two}` }])
  } finally {
    left.mesh.stop()
    right.mesh.stop()
    names.close()
  }
})

test('the address in a member’s Hello is used if the address in its record is outdated', async () => {
  const [one, two] = [await freePort(), await freePort()]
  const gone = members.map((member) =>
    member.id === 'a'
      ? { ...member, address: `127.0.0.1:${one}` }
      : { ...member, address: '127.0.0.1:1' },
  )
  const at = (port: number) => ({ bind: `127.0.0.1:${port}`, advertise: `127.0.0.1:${port}` })
  const left = await startMesh('a', a, gone, at(one))
  const right = await startMesh('b', b, gone, at(two))
  try {
    await until('both see each other', () =>
      [left, right].every(({ mesh }) => mesh.peers().every(({ isConnected }) => isConnected)),
    )
    expect(left.mesh.peers()).toMatchObject([{ id: 'b', address: `127.0.0.1:${two}` }])
  } finally {
    left.mesh.stop()
    right.mesh.stop()
  }
})
