import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { allServices, createService, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: followers accept writes; all controllers end with the same bytes. Method: three real
// processes, 32 clients on the two followers.

let cluster: TestCluster
beforeAll(() => {
  cluster = sharedCluster()
})

test('1,000 services that 32 clients created through two followers exist on all three controllers, with one digest', async () => {
  const followers = await Promise.all((await cluster.followers()).map((k) => cluster.loggedIn(k)))
  let next = 0
  await Promise.all(
    Array.from({ length: 32 }, async (_, worker) => {
      for (let n = next++; n < 1000; n = next++) {
        const fate = await createService(followers, worker + n, `s-${n}`, { hasRequestId: true })
        expect(fate).toBe('acknowledged')
      }
    }),
  )
  const names = Array.from({ length: 1000 }, (_, n) => `s-${n}`).sort()
  const lists = await Promise.all(
    [1, 2, 3].map(async (k) => {
      const client = await cluster.loggedIn(k)
      return until(`ctrl${k} has all`, async () => {
        const services = [...(await allServices(client))].filter(([, name]) => /^s-/.test(name))
        return services.length === 1000 && new Map(services)
      })
    }),
  )
  for (const list of lists) expect([...list.values()].sort()).toEqual(names)
  const ids = lists.map((list) => [...list.keys()].sort())
  expect(ids[1]).toEqual(ids[0])
  expect(ids[2]).toEqual(ids[0])
  await until('one digest at one index', async () => {
    const statuses = await Promise.all([1, 2, 3].map((k) => cluster.status(k)))
    const own = statuses.map((members, at) => members.find((m) => m.id === `ctrl${at + 1}`))
    return new Set(own.map((m) => `${m?.digestIndex} ${m?.digest}`)).size === 1
  })
})

test('one trace ID appears in the logs of the controller that received the request and of the leader', async () => {
  const [follower = 0] = await cluster.followers()
  const leader = await cluster.leader()
  const client = await cluster.loggedIn(follower)
  const traceId = 'c3'.repeat(16)
  const headers = {
    traceparent: `00-${traceId}-${'d4'.repeat(8)}-01`,
    tracestate: 'vendor=dropped',
  }
  const body = { name: 'traced', encryptionRequired: true }
  const path = '/edge/management/v1/services'
  expect((await client.request('POST', path, { body, headers })).status).toBe(201)
  const linesOf = (k: number): Record<string, unknown>[] =>
    readFileSync(join(cluster.folder, cluster.id(k), 'controller.log'), 'utf8')
      .split('\n')
      .filter((line) => line.includes(traceId))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  await until('each has written its lines', () => {
    return Promise.resolve(linesOf(follower).length === 2 && linesOf(leader).length === 1)
  })
  const [audited, answered] = linesOf(follower)
  expect(audited).toMatchObject({ audit: 'write', entity: 'service', outcome: 'done', traceId })
  const access = { method: 'POST', operation: 'createService', status: 201 }
  expect(answered).toMatchObject({ access, parentSpanId: 'd4'.repeat(8), msg: 'request' })
  expect(linesOf(leader)[0]).toMatchObject({
    peer: cluster.id(follower),
    traceId,
    parentSpanId: answered?.['spanId'],
    msg: `proposing a write forwarded by ${cluster.id(follower)}`,
  })
})

test('three controllers that are killed at the same time under load restart with every acknowledged write', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  const acknowledged: string[] = []
  let isOver = false
  const writers = Array.from({ length: 12 }, async (_, worker) => {
    for (let n = 0; !isOver; n += 1) {
      const name = `k-${worker}-${n}`
      const fate = await createService(clients.slice(worker % 3), 0, name, {
        hasRequestId: false,
      }).catch(() => 'unknown' as const)
      if (fate === 'acknowledged') acknowledged.push(name)
      else return
    }
  })
  await until('a few hundred writes', () => Promise.resolve(acknowledged.length > 300))
  for (const k of [1, 2, 3]) cluster.kill(k)
  isOver = true
  await Promise.all(writers)
  for (const k of [1, 2, 3]) cluster.run(k)
  const reader = await cluster.loggedIn(1)
  const there = await until('all acknowledged writes', async () => {
    const services = new Set((await allServices(reader)).values())
    return acknowledged.every((name) => services.has(name)) && services
  })
  expect(there.size).toBeGreaterThanOrEqual(1000 + acknowledged.length)
})
