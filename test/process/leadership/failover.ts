import { beforeAll, expect, test } from 'vitest'
import { allServices, type Client, createService, pause, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: when the leader fails, no acknowledged write is lost, no write with a request ID takes
// effect twice, and the list of controllers stays correct.
// Method: three real processes, kill -9 of the leader, 6 clients, one third without request IDs.

let cluster: TestCluster
beforeAll(() => {
  cluster = sharedCluster()
})

test('every acknowledged write exists exactly once after three leaders were killed one after the other under load', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  const fates = new Map<string, 'acknowledged' | 'unknown'>()
  let isOver = false
  const writers = Array.from({ length: 6 }, async (_, worker) => {
    for (let n = 0; !isOver; n += 1) {
      const name = `w-${worker}-${n}`
      fates.set(
        name,
        await createService(clients, worker + n, name, { hasRequestId: worker % 3 !== 0 }),
      )
      await pause(40)
    }
  })
  for (let round = 0; round < 3; round += 1) {
    const before = fates.size
    await until('writes flow', () => Promise.resolve(fates.size > before + 50))
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
    [1, 2, 3].map(async (k) => {
      const names = [...(await allServices(await cluster.loggedIn(k))).values()]
      return names.filter((name) => name.startsWith('w-'))
    }),
  )
  for (const names of lists) {
    expect(new Set(names).size, 'each name once').toBe(names.length)
    const there = new Set(names)
    const lost = [...fates].filter(([name, fate]) => fate === 'acknowledged' && !there.has(name))
    expect(lost, 'acknowledged writes that were lost').toEqual([])
    expect(names.filter((name) => !fates.has(name))).toEqual([])
  }
  const withId = [...fates].filter(([name]) => Number(name.split('-')[1]) % 3 !== 0)
  expect(withId.every(([, fate]) => fate === 'acknowledged')).toBe(true)
})

test('a data integrity check whose leader is killed ends with an error that every controller shows', async () => {
  const path = '/edge/management/v1/database'
  const start = async (client: Client): Promise<void> => {
    const asked = await client.request('POST', `${path}/check-data-integrity`)
    expect(asked.status).toBe(202)
  }
  const resultOf = async (client: Client): Promise<IntegrityResult> =>
    (await client.request('GET', `${path}/data-integrity-results`)).body.data as IntegrityResult
  const isOver = async (client: Client): Promise<IntegrityResult | false> => {
    const now = await resultOf(client)
    return !now.inProgress && now
  }

  let cut: IntegrityResult | null = null
  for (let round = 0; cut === null && round < 5; round += 1) {
    const leader = await cluster.leader()
    const client = await cluster.loggedIn(leader)
    await widen(client, round)
    const from = await appliedOn(client)
    await start(client)
    // Waits for two entries: the one that requests the check, and the one by which the leader
    // starts it. It polls without a pause, because that state is brief.
    while ((await appliedOn(client)) < from + 2);
    cluster.kill(leader)
    const survivor = await cluster.loggedIn(leader === 1 ? 2 : 1)
    const result = await until('the run is over', () => isOver(survivor))
    cluster.run(leader)
    await cluster.loggedIn(leader)
    // If the check was complete before the signal arrived, the kill interrupted nothing; the next
    // attempt has more to check.
    if (result.error !== '') cut = result
  }
  expect(cut).toMatchObject({
    inProgress: false,
    error: expect.stringContaining('stopped before the end of the run'),
  })
  const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  for (const client of clients) {
    await until(`${client.baseUrl} shows it`, async () => {
      const { error, endTime } = await resultOf(client)
      return error === cut?.error && endTime === cut.endTime
    })
  }
  const first = clients[0] ?? (await cluster.loggedIn(1))
  await start(first)
  const next = await until('the next run is over', () => isOver(first))
  expect(next).toMatchObject({ error: '', results: [] })
})

interface IntegrityResult {
  readonly inProgress: boolean
  readonly error: string
  readonly endTime: string | null
  readonly results: readonly unknown[]
}

/** Creates services that take long to check, because each has many index entries. */
async function widen(client: Client, round: number): Promise<void> {
  const roleAttributes = Array.from({ length: 60 }, (_, at) => `wide-${at}`)
  const names = Array.from({ length: 500 }, (_, at) => `wide-${round}-${at}`)
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        const body = { name, encryptionRequired: true, roleAttributes }
        const made = await client.request('POST', '/edge/management/v1/services', { body })
        expect(made.status, made.text).toBe(201)
      }
    }),
  )
}

async function appliedOn(client: Client): Promise<number> {
  const { text } = await client.request('GET', '/metrics')
  const [, index = ''] = /^flotilla_raft_applied_index(?:{.*})? ([0-9]+)$/m.exec(text) ?? []
  return Number(index)
}

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
