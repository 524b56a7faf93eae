import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'

import { setConfigOptions } from '../../../src/config/controller/compose.ts'
import { until } from '../support/client.ts'
import { expectMembers, type Fleet } from '../support/fleet.ts'
import { Load } from '../support/load.ts'
import { sharedFleet } from '../support/shared-cluster.ts'

// Goal: if a controller restarts with an empty disk or with an older copy of its disk, no
// acknowledged write is lost, and the controller becomes a voter again by itself. Method: while
// clients write, one data folder is removed, and then another one is replaced by a copy.

let fleet: Fleet
beforeAll(() => {
  fleet = sharedFleet()
})

async function isVoterAgain(k: number): Promise<void> {
  await until(`ctrl${k} votes again`, () => fleet.isConnectedVoter(k, 1), 60_000)
}

test('a wiped disk, and then a disk that was reset to an old copy, lose no acknowledged write, and both controllers vote again', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => fleet.loggedIn(k)))
  const before = await Load.written(await fleet.loggedIn(1))
  const load = new Load(clients, 4, before)
  await load.more(100)

  await fleet.stop(2, 'SIGKILL')
  rmSync(fleet.data(2), { recursive: true })
  // The file of addresses next to the key is kept, as on the first controller of a cluster.
  const config = join(fleet.folder(2), 'config.yml')
  writeFileSync(config, setConfigOptions(readFileSync(config, 'utf8'), { 'cluster.seeds': [] }))
  await load.more(100)
  fleet.run(2)
  await isVoterAgain(2)

  const copy = join(fleet.dir, 'old-copy')
  await fleet.stop(3, 'SIGTERM')
  cpSync(fleet.data(3), copy, { recursive: true })
  await fleet.start(3)
  await load.more(300)
  await fleet.stop(3, 'SIGKILL')
  rmSync(fleet.data(3), { recursive: true })
  cpSync(copy, fleet.data(3), { recursive: true })
  fleet.run(3)
  await until('what was rolled back is set aside', () =>
    Promise.resolve(readdirSync(fleet.folder(3)).some((name) => name.startsWith('data.set-aside'))),
  )
  await isVoterAgain(3)

  await load.more(100)
  await load.end()
  await expectMembers(fleet, [1, 2, 3])
  for (const k of [1, 2, 3]) {
    const reader = await fleet.loggedIn(k)
    await until(`ctrl${k} holds every write`, async () => {
      await load.expectAll(reader)
      return true
    })
  }
  await until('one digest at one index', async () => {
    const statuses = await Promise.all([1, 2, 3].map((k) => fleet.status(k)))
    const own = statuses.map((members, at) => members.find(({ id }) => id === `ctrl${at + 1}`))
    return new Set(own.map((member) => `${member?.digestIndex} ${member?.digest}`)).size === 1
  })
  expect(load.fates.size - before.fates.size).toBeGreaterThan(600)
})
