import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ClusterStatus } from '../../src/ports/cluster-status.ts'
import type { Client } from './support/client.ts'
import { isRunning, until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'
import { flotillaOfSources } from '../support/program.ts'
import { Load } from './support/load.ts'

// Goal: controllers are upgraded one by one to a release with one more field and one more feature level, under load: no
// write is refused, no controller is quarantined, and the field takes effect once all of them know it, not before.
// Method: three real processes; the next release is this one with support/next-release.ts preloaded.

const WRITERS = 3

const preload = pathToFileURL(join(import.meta.dirname, 'support/next-release.ts')).href
/** What is compiled of the next release is kept apart from what this one has compiled. */
const nextRelease = (): Record<string, string> => ({
  NODE_OPTIONS: `--import=${preload}`,
  NODE_COMPILE_CACHE: join(cluster.dir, 'compiled'),
})

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start()
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

async function stop(k: number): Promise<void> {
  const pid = cluster.pid(k)
  cluster.kill(k, 'SIGTERM')
  await until(`${cluster.id(k)} has ended`, () => Promise.resolve(!isRunning(pid)), 15_000)
}

/** Until it is caught up and told of all others, as an operator waits before the next one. */
async function upgrade(k: number): Promise<ClusterStatus> {
  await stop(k)
  cluster.run(k, nextRelease(), flotillaOfSources)
  const client = cluster.client(k)
  await until(
    `${cluster.id(k)} answers`,
    async () => (await client.request('GET', '/edge/client/v1/version')).status === 200,
    60_000,
  )
  return await until(`${cluster.id(k)} is back`, async () => {
    const status = await cluster.clusterStatus(k)
    const self = status.members.find(({ id }) => id === cluster.id(k))
    const behind = Math.max(...status.members.map(({ commit }) => commit)) - (self?.applied ?? 0)
    const hasHeardAll = status.members.every(({ featureLevel }) => featureLevel !== 0)
    return status.leaderId !== null && hasHeardAll && behind < 50 && status
  })
}

/** @returns the fields that had no effect. */
async function createOwned(client: Client, name: string): Promise<unknown> {
  const body = { name, encryptionRequired: true, owner: 'harbour' }
  const answer = await client.request('POST', '/edge/management/v1/services', { body })
  expect(answer.status, answer.text).toBe(201)
  const { id } = answer.body.data as { id: string }
  const path = `/edge/management/v1/services/${id}`
  const detail = await client.request('GET', path, { isHeld: false })
  const { owner = '' } = detail.body.data as { owner?: string }
  return { ignored: answer.body.meta?.['ignoredFields'] ?? [], owner }
}

function expectNoQuarantine(): void {
  for (const k of [1, 2, 3]) {
    const folder = join(cluster.folder, cluster.id(k))
    const log = readFileSync(join(folder, 'controller.log'), 'utf8')
    expect(log, cluster.id(k)).not.toMatch(/STATE_DIVERGED|quarantine/i)
    expect(existsSync(join(folder, 'data', 'QUARANTINE'))).toBe(false)
  }
}

test('a rolling upgrade under load refuses no write and raises the feature level at its end', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  const [first, second, third] = clients as [Client, Client, Client]
  let load = new Load(clients, WRITERS)
  await load.more(30)

  await upgrade(1)
  const half = await upgrade(2)
  expect(half.featureLevel).toBe(1)
  expect(half.nextFeatureLevel).toEqual({ level: 2, waitsFor: ['ctrl3'] })
  expect(half.members.map(({ featureLevel }) => featureLevel)).toEqual([2, 2, 1])
  const unknown = { ignored: ['owner'], owner: '' }
  expect(await createOwned(first, 'owned-1')).toEqual(unknown)
  expect(await createOwned(third, 'owned-2'), 'the older release').toEqual(unknown)
  await load.more(30)
  await load.end()
  await cluster.compareDigests()
  expectNoQuarantine()

  load = new Load(clients, WRITERS, load)
  await load.more(30)
  await upgrade(3)
  for (const k of [1, 2, 3]) {
    await until(
      `level 2 on ${cluster.id(k)}`,
      async () => (await cluster.clusterStatus(k)).featureLevel === 2,
    )
  }
  expect(await createOwned(second, 'owned-3')).toEqual({ ignored: [], owner: 'harbour' })
  await load.more(30)
  await load.end()
  await cluster.compareDigests()
  expectNoQuarantine()

  await stop(3)
  const older = cluster.run(3)
  const ended = new Promise((done) => older.once('exit', done))
  expect(await ended, 'the release of before does not start any more').not.toBe(0)
  const log = readFileSync(join(cluster.folder, 'ctrl3', 'controller.log'), 'utf8')
  expect(log).toContain('install a version that knows level 2')
})
