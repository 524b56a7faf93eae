import { beforeAll, expect, test } from 'vitest'
import { type Client, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: access that ends at a set time ends on every controller at the same log entry, even if the
// leader is killed just before that time. Method: three real processes, kill -9 of the leader.

let cluster: TestCluster
beforeAll(() => {
  cluster = sharedCluster()
})

const path = '/edge/management/v1'
const LEFT_MS = 4000

interface Row {
  readonly id: string
  readonly isEnded?: boolean
  readonly roleAttributes: readonly string[]
  readonly updatedAt: string
}

async function rowOf(client: Client, collection: string, id: string) {
  const answer = await client.request('GET', `${path}/${collection}/${id}`)
  return { row: answer.body.data as Row, etag: answer.headers['etag'] }
}

test('a policy and a role attribute expire on all controllers at the same log entry while the leader changes', async () => {
  const client = await cluster.loggedIn(1)
  const make = async (collection: string, body: object): Promise<string> => {
    const answer = await client.request('POST', `${path}/${collection}`, { body })
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    return (answer.body.data as Row).id
  }
  const end = new Date(Date.now() + LEFT_MS).toISOString()
  const policyId = await make('service-policies', {
    name: 'ends',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#ends'],
    serviceRoles: ['#ends'],
    expiresAt: end,
  })
  const identityId = await make('identities', {
    name: 'ends',
    type: 'Device',
    isAdmin: false,
    roleAttributes: ['ends', 'stays'],
    roleAttributesExpireAt: { ends: end },
  })
  const leader = await cluster.leader()
  const survivors = [1, 2, 3].filter((k) => k !== leader)
  const clients = await Promise.all(survivors.map((k) => cluster.loggedIn(k)))
  for (const one of clients) {
    const { row } = await rowOf(one, 'service-policies', policyId)
    expect([row.isEnded, Date.now() < Date.parse(end)]).toEqual([undefined, true])
  }
  cluster.kill(leader)
  const ended = async (one: Client) => {
    const policy = await rowOf(one, 'service-policies', policyId)
    const identity = await rowOf(one, 'identities', identityId)
    if (policy.row.isEnded !== true || identity.row.roleAttributes.length > 1) return null
    return { policy, identity }
  }
  const first = await until('the access has ended', async () => {
    const [one] = clients
    return one === undefined ? null : await ended(one)
  })
  expect(Date.parse(first.policy.row.updatedAt)).toBeGreaterThanOrEqual(Date.parse(end))
  expect(first.identity.row.roleAttributes).toEqual(['stays'])
  expect(first.identity.row.updatedAt).toBe(first.policy.row.updatedAt)
  cluster.run(leader)
  for (const k of [1, 2, 3]) {
    const own = await cluster.loggedIn(k)
    expect(await until(`the access has ended at ctrl${k}`, () => ended(own))).toEqual(first)
  }
})
