import { afterEach, expect, test } from 'vitest'

import { callPeerOnce } from '../../src/cluster/mesh/peer-call.ts'
import { Problem } from '../../src/lib/problems.ts'
import { formCluster, type TestCluster } from './cluster-fixture.ts'
import {
  controllerIdentity,
  createAuthority,
  issueIdentity,
  memberOf,
  startMesh,
  TRUST_DOMAIN,
  until,
} from './mesh-fixture.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (from: Uint8Array): string => new TextDecoder().decode(from)

let cluster: TestCluster | null = null
afterEach(async () => {
  await cluster?.stop()
  cluster = null
})

async function pair(): Promise<TestCluster> {
  cluster = await formCluster(2)
  await cluster.start('n1')
  await cluster.start('n2')
  const { clusterNode } = cluster.node('n1')
  await until('n1 has a link to n2', () => clusterNode.peers.readyPeers().includes('n2'))
  await until('n2 has a link to n1', () =>
    (cluster?.node('n2').clusterNode.peers.readyPeers() ?? []).includes('n1'),
  )
  return cluster
}

test('a call to another controller arrives with its caller, and the response or problem returns to the caller', async () => {
  const { node } = await pair()
  node('n2').clusterNode.peers.serve('greet', 'members', (caller, payload) =>
    Promise.resolve(bytes(`${text(payload)} ${caller.id}, ${String(caller.isMember)}`)),
  )
  node('n2').clusterNode.peers.serve('refuse', 'members', () =>
    Promise.reject(new Problem('MEMBERSHIP_REFUSED', { detail: 'not like that' })),
  )
  const { peers } = node('n1').clusterNode
  expect(text(await peers.call('n2', 'greet', bytes('good day'), 5000))).toBe('good day n1, true')
  await expect(peers.call('n2', 'refuse', bytes(''), 5000)).rejects.toMatchObject({
    code: 'MEMBERSHIP_REFUSED',
    detail: 'not like that',
  })
  await expect(peers.call('n2', 'unheard-of', bytes(''), 5000)).rejects.toMatchObject({
    code: 'NOT_FOUND',
  })
  await expect(peers.call('n7', 'greet', bytes(''), 5000)).rejects.toMatchObject({
    code: 'PEER_UNREACHABLE',
  })
})

test('a call fails immediately if the called controller disconnects, whatever its timeout', async () => {
  const { node } = await pair()
  let isAsked = false
  node('n2').clusterNode.peers.serve('wait', 'members', () => {
    isAsked = true
    return new Promise(() => undefined)
  })
  const answer = node('n1').clusterNode.peers.call('n2', 'wait', bytes(''), 600_000)
  const failure = expect(answer).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
  await until('n2 has the call', () => isAsked)
  await node('n2').kill()
  await failure
})

test('one-way messages between controllers arrive in order', async () => {
  const { node } = await pair()
  const heard: string[] = []
  node('n2').clusterNode.peers.onNote('count', (from, payload) => heard.push(from + text(payload)))
  for (let at = 0; at < 50; at += 1)
    node('n1').clusterNode.peers.note('n2', 'count', bytes(`${at}`))
  await until('all notes are there', () => heard.length === 50)
  expect(heard).toEqual(Array.from({ length: 50 }, (_, at) => `n1${at}`))
})

test('a controller that is not a member may call a member, but a router and a controller of another CA may not', async () => {
  const authority = await createAuthority()
  const identity = await controllerIdentity(authority, 'n1')
  const mesh = await startMesh('n1', identity, [memberOf('n1', identity, '127.0.0.1:1')])
  const ask = {
    address: `127.0.0.1:${mesh.port}`,
    trustDomain: TRUST_DOMAIN,
    method: 'enter',
    payload: bytes(''),
    timeoutMs: 10_000,
  }
  try {
    const stranger = await controllerIdentity(authority, 'n9')
    const { calleeId, payload } = await callPeerOnce({ ...ask, identity: stranger })
    expect([calleeId, text(payload)]).toEqual(['n1', 'n9 asked enter'])

    const router = await issueIdentity(authority, {
      commonName: 'edge-1',
      uris: [`spiffe://${TRUST_DOMAIN}/router/edge-1`],
    })
    await expect(callPeerOnce({ ...ask, identity: router })).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
    })

    const foreign = await controllerIdentity(await createAuthority(), 'n9')
    await expect(callPeerOnce({ ...ask, identity: foreign })).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
    })
  } finally {
    mesh.mesh.stop()
  }
})
