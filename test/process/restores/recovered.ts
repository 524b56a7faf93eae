import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { expectMembers, type Fleet } from '../support/fleet.ts'
import { until } from '../support/client.ts'
import { Load } from '../support/load.ts'
import { sharedFleet } from '../support/shared-cluster.ts'

// Goal: a cluster that has lost two of three data folders serves again from the third, with every
// write in it. If the lost controllers return, the cluster refuses them permanently, and they
// report what the operator must do. Method: three real processes under load.

let fleet: Fleet
beforeAll(() => {
  fleet = sharedFleet()
})

const recover = (k: number, ...flags: string[]): ReturnType<Fleet['cli']> =>
  fleet.cli(['cluster', 'recover', '--config', fleet.config(k), ...flags])

const lostFolder = (k: number): string => join(fleet.dir, `lost-${k}`)

async function expectFenced(k: number): Promise<void> {
  expect(await fleet.ended(k), 'a member informs it, and it exits with 0').toBe(0)
  const sentence = `the cluster was recovered without ctrl${k} (generation 2, reported by ctrl1)`
  expect(fleet.log(k)).toContain(sentence)
  fleet.run(k)
  expect(await fleet.ended(k), 'it exits with 0 after a restart, too').toBe(1)
}

test('the remaining controller serves again after two of three controllers lost their data folders; if these two controllers return with their old folders, they are fenced', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => fleet.loggedIn(k)))
  const load = new Load(clients, 4, await Load.written(await fleet.loggedIn(1)))
  await load.more(100)
  await load.end()
  const reader = await fleet.loggedIn(1)
  await until('ctrl1 holds every write', async () => {
    await load.expectAll(reader)
    return true
  })

  const busy = await recover(1, '--confirm', 'without ctrl2 ctrl3')
  expect([busy.code, busy.stderr]).toEqual([
    1,
    expect.stringContaining('in use by another process'),
  ])
  await fleet.stop(1, 'SIGKILL')
  const alive = await recover(1, '--confirm', 'without ctrl2 ctrl3')
  expect(alive.code).toBe(1)
  expect(alive.stderr).toMatch(/ctrl[23] at 127\.0\.0\.1:\d+.* is running; stop it/)
  for (const k of [2, 3]) await fleet.stop(k, 'SIGKILL')

  const facts = join(fleet.dir, 'ctrl2.json')
  writeFileSync(facts, (await recover(2, '--inspect', '--json')).stdout)
  const needless = await recover(1, '--survivor', facts)
  expect([needless.code, needless.stderr]).toEqual([1, expect.stringContaining('a majority')])

  for (const k of [2, 3]) renameSync(fleet.data(k), lostFolder(k))
  const identity = readFileSync(join(fleet.data(1), 'IDENTITY'), 'utf8')
  const unsure = await recover(1)
  expect([unsure.code, unsure.stdout]).toEqual([
    1,
    expect.stringContaining('generation 1 becomes 2'),
  ])
  expect(unsure.stderr).toContain("--confirm 'without ctrl2 ctrl3'")
  expect((await recover(1, '--confirm', 'without ctrl2')).code).toBe(1)
  expect(readFileSync(join(fleet.data(1), 'IDENTITY'), 'utf8')).toBe(identity)

  const done = await recover(1, '--confirm', 'without ctrl2 ctrl3')
  expect(done.code, done.stderr).toBe(0)
  await fleet.start(1)
  const session = reader.token
  await until('the session of before is honoured', async () => {
    const answer = await reader.request('GET', '/edge/client/v1/current-identity')
    return answer.status === 200 && reader.token === session
  })
  await load.expectAll(reader)
  const after = new Load([await fleet.loggedIn(1)], 2, load)
  await after.more(10)

  for (const k of [2, 3]) renameSync(lostFolder(k), fleet.data(k))
  for (const k of [2, 3]) fleet.run(k)
  for (const k of [2, 3]) await expectFenced(k)
  const old = await recover(2, '--confirm', 'without ctrl1 ctrl3')
  expect(old.stderr).toContain('is fenced: the cluster was recovered without it into generation 2')
  await after.more(10)

  rmSync(fleet.folder(2), { recursive: true })
  await fleet.join(2, 1)
  await expectMembers(fleet, [1, 2])
  await after.end()
  const second = await fleet.loggedIn(2)
  await until('ctrl2 holds every write', async () => {
    await after.expectAll(second)
    return true
  })
})
