import { afterAll, beforeAll, expect, test } from 'vitest'
import { allServices, createService, until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: the leader may die. Nothing acknowledged is lost, nothing with a request id happens twice, and the list of
// controllers tells the truth meanwhile.
// Method: three real processes, kill -9 of whoever leads, 24 clients, one third without request ids.

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start()
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

test('the leader dies three times under load, and every acknowledged write stands exactly once', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  const fates = new Map<string, 'acknowledged' | 'unknown'>()
  let isOver = false
  const writers = Array.from({ length: 24 }, async (_, worker) => {
    for (let n = 0; !isOver; n += 1) {
      const name = `w-${worker}-${n}`
      fates.set(
        name,
        await createService(clients, worker + n, name, { hasRequestId: worker % 3 !== 0 }),
      )
    }
  })
  for (let round = 0; round < 3; round += 1) {
    const before = fates.size
    await until('writes flow', () => Promise.resolve(fates.size > before + 100), 60_000)
    const leader = await cluster.leader()
    cluster.kill(leader)
    const survivors = [1, 2, 3].filter((k) => k !== leader)
    for (const k of survivors) {
      await until(
        `ctrl${k} shows ctrl${leader} offline`,
        async () => (await isOnline(cluster, k, leader)) === false,
        5_000 * 3,
      )
    }
    await until('a new leader', async () => {
      const members = await cluster.status(survivors[0] ?? 1)
      return members.some((m) => m.role === 'leader' && m.id !== `ctrl${leader}`)
    })
    cluster.run(leader)
    for (const k of survivors) {
      await until(`ctrl${k} shows ctrl${leader} online again`, () => isOnline(cluster, k, leader))
    }
  }
  isOver = true
  await Promise.all(writers)

  const lists = await Promise.all(
    [1, 2, 3].map(async (k) => [...(await allServices(await cluster.loggedIn(k))).values()]),
  )
  for (const names of lists) {
    expect(new Set(names).size, 'each name once').toBe(names.length)
    const there = new Set(names)
    const lost = [...fates].filter(([name, fate]) => fate === 'acknowledged' && !there.has(name))
    expect(lost, 'acknowledged and lost').toEqual([])
    expect(names.filter((name) => !fates.has(name))).toEqual([])
  }
  const withId = [...fates].filter(([name]) => Number(name.split('-')[1]) % 3 !== 0)
  expect(withId.every(([, fate]) => fate === 'acknowledged')).toBe(true)
})

async function isOnline(on: TestCluster, k: number, whom: number): Promise<boolean> {
  const client = sessions.get(k) ?? (await on.loggedIn(k))
  sessions.set(k, client)
  const answer = await client.request('GET', '/edge/client/v1/controllers')
  if (answer.status === 401) sessions.delete(k)
  const rows = answer.body.data as { name: string; isOnline: boolean }[]
  const row = rows.find((candidate) => candidate.name === `ctrl${whom}`)
  if (row === undefined) throw new Error(`ctrl${k} does not list ctrl${whom}`)
  return row.isOnline
}
const sessions = new Map<number, Awaited<ReturnType<TestCluster['loggedIn']>>>()
