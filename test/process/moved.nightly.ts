import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nameServer } from '../support/name-server.ts'
import { freePortBlock } from '../support/ports.ts'
import { until } from './support/client.ts'
import { expectMembers, Fleet } from './support/fleet.ts'
import { Load } from './support/load.ts'

// Goal: controllers that all restart at other addresses, as containers do, find each other and
// elect a leader again. Method: the hosts of all three change while they are stopped; the
// configuration file of each one says only where it binds, and only the name server knows the
// addresses of the others.

const members = [1, 2, 3]
const addresses: string[] = []
let names: { at: string; close: () => void }
let fleet: Fleet
beforeAll(async () => {
  names = await nameServer(addresses)
  const port = await freePortBlock(1)
  fleet = await Fleet.create(3, {
    port,
    env: {
      FLOTILLA_CLUSTER_SEEDS: `controllers.flotilla.test:${port + 200}`,
      FLOTILLA_CLUSTER_RESOLVERS: names.at,
    },
    // This test measures the time to the first leader.
    hasCalmElections: false,
  })
  fleet.hasSamePorts = true
  moveTo('127.1')
  await fleet.init()
  await fleet.join(2, 1)
  await fleet.join(3, 1)
})
afterAll(async () => {
  await fleet[Symbol.asyncDispose]()
  names.close()
})

function moveTo(net: string): void {
  addresses.length = 0
  for (const k of members) {
    fleet.hosts.set(k, `${net}.${k}.1`)
    addresses.push(fleet.host(k))
  }
}

test('a cluster whose addresses all changed at the same time elects a leader and keeps every write', async () => {
  const load = new Load(await Promise.all(members.map((k) => fleet.loggedIn(k))))
  await load.more(60)
  await load.end()
  await Promise.all(members.map((k) => fleet.stop(k, 'SIGTERM')))
  const before = new Map(members.map((k) => [k, fleet.host(k)]))
  moveTo('127.2')
  for (const k of members) {
    const text = readFileSync(fleet.config(k), 'utf8')
    writeFileSync(fleet.config(k), text.replaceAll(before.get(k) ?? '', fleet.host(k)))
  }
  const startedAt = performance.now()
  for (const k of members) fleet.run(k)
  for (const k of members) {
    await until(`ctrl${k} sees a leader`, async () => {
      const seen = await fleet.status(k)
      return seen.some(({ role }) => role === 'leader')
    })
  }
  const tookMs = performance.now() - startedAt
  console.log(`every controller saw a leader after ${Math.round(tookMs)} ms`)
  const shown = async (k: number): Promise<string[]> => {
    const listed = await fleet.cluster(k, 'list', '--json')
    return (JSON.parse(listed) as { address: string }[]).map(({ address }) => address)
  }
  for (const k of members) {
    // A leader exists within 5 s of the time at which they have found each other.
    await until(
      `ctrl${k} lists where all are now`,
      async () => (await shown(k)).every((address) => address.startsWith('127.2.')),
      5_000,
    )
  }
  await expectMembers(fleet, members)
  for (const k of members) await load.expectAll(await fleet.loggedIn(k))
  expect(load.fates.size).toBeGreaterThanOrEqual(60)
})
