import { beforeAll, expect, test } from 'vitest'
import { createService, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: password hashing must not delay consensus (it would if the log used the shared thread
// pool). Method: 8 clients log in as fast as they can while others write; the term must not change.

let cluster: TestCluster
beforeAll(() => {
  cluster = sharedCluster()
})

test('no election happens while 8 clients continuously log in by password', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  const leader = await cluster.leader()
  const term = (await cluster.status(leader)).find((m) => m.role === 'leader')?.term
  let isOver = false
  let logIns = 0
  let writes = 0
  const guests = [1, 2, 3, 1, 2, 3, 1, 2].map((k) => cluster.client(k))
  const storm = guests.map(async (client) => {
    while (!isOver) {
      const answer = await client.logIn(cluster.admin)
      expect([200, 429]).toContain(answer.status)
      if (answer.status === 200) logIns += 1
    }
  })
  const writer = (async () => {
    while (!isOver) {
      await createService(clients, writes, `storm-${writes}`, { hasRequestId: true })
      writes += 1
    }
  })()
  await until('30 log-ins and 15 writes', () => Promise.resolve(logIns > 30 && writes > 15))
  isOver = true
  await Promise.all([...storm, writer])
  const after = (await cluster.status(leader)).find((m) => m.role === 'leader')
  expect([after?.id, after?.term]).toEqual([`ctrl${leader}`, term])
})
