import { rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from './support/client.ts'
import { expectMembers, Fleet } from './support/fleet.ts'
import { Load } from './support/load.ts'

// Goal: a cluster grows from one controller to five and shrinks to three, with only the command
// line; meanwhile clients keep writing, lose no write and see no failure. Method: 4 writers that
// use all current controllers.

let fleet: Fleet
beforeAll(async () => {
  fleet = await Fleet.create(5)
  await fleet.init()
})
afterAll(async () => {
  await fleet[Symbol.asyncDispose]()
})

async function voters(k: number): Promise<string[]> {
  return (await fleet.listed(k)).flatMap(({ id, voter }) => (voter ? id : [])).sort()
}

/** Numbers of the members; the first number is that of a running member. */
async function memberNumbers(): Promise<number[]> {
  const asked = [1, 2, 3, 4, 5].find((k) => fleet.isRunning(k)) ?? 1
  const numbers = (await fleet.listed(asked)).map(({ id }) => Number(id.slice('ctrl'.length)))
  return [asked, ...numbers.filter((k) => k !== asked)]
}

/** Numbers that no member has, and of whose former members no file is left. */
async function freeNumbers(): Promise<number[]> {
  const taken = await memberNumbers()
  const free = [1, 2, 3, 4, 5].filter((k) => !taken.includes(k))
  for (const k of free) {
    await fleet.stop(k, 'SIGKILL')
    rmSync(fleet.folder(k), { recursive: true, force: true })
  }
  return free
}

test('a cluster grows from 1 to 3 to 5 controllers and shrinks to 3 while writes continue; then one joins, and a killed one is replaced', async () => {
  const load = new Load([await fleet.loggedIn(1)])
  await load.more(40)
  for (const k of [2, 3, 4, 5]) {
    await fleet.join(k, k - 1)
    await expectMembers(
      fleet,
      [1, 2, 3, 4, 5].filter((one) => one <= k),
    )
    load.clients.push(await fleet.loggedIn(k))
    await load.more(40)
  }
  expect(await voters(5)).toEqual(['ctrl1', 'ctrl2', 'ctrl3', 'ctrl4', 'ctrl5'])

  // Removes a follower, then the leader. Clients of each continue at other controllers, as clients
  // with a list of addresses do.
  const leader = await fleet.leader(2)
  const follower = [2, 3, 4, 5].find((k) => k !== leader) ?? 2
  const left = new Set([1, 2, 3, 4, 5])
  for (const k of [follower, leader]) {
    left.delete(k)
    const [other = 0] = left
    await fleet.change(other, 'remove', `ctrl${k}`)
    await expectMembers(fleet, [...left])
    expect(await fleet.ended(k)).toBe(0)
    expect(fleet.log(k)).toContain(`ctrl${k} was removed from the cluster`)
    await load.more(40)
  }

  // A learner serves requests and does not vote; one step lets it replace a lost voter.
  const [first = 0, second = 0] = left
  const [free = 0] = await freeNumbers()
  await fleet.join(free, first, '--learner')
  await expectMembers(fleet, [...left, free])
  expect(await voters(first)).not.toContain(`ctrl${free}`)
  load.clients.push(await fleet.loggedIn(free))
  await fleet.stop(second, 'SIGKILL')
  const told = await fleet.change(first, 'replace', `ctrl${second}`, `ctrl${free}`)
  expect(told).toContain(`replaced ctrl${second} by ctrl${free}`)
  left.delete(second)
  left.add(free)
  await expectMembers(fleet, [...left])
  expect(await voters(first)).toEqual([...left].map((k) => `ctrl${k}`).sort())
  await load.more(40)

  await load.end()
  for (const k of left) {
    const reader = await fleet.loggedIn(k)
    await until(`ctrl${k} holds every write`, async () => {
      await load.expectAll(reader)
      return true
    })
  }
})

test('a ticket admits one controller only', async () => {
  const [asked = 0] = await memberNumbers()
  const [first = 0, second = 0] = await freeNumbers()
  const ticket = await fleet.invite(asked, '--learner')
  fleet.beginJoin(first, ticket)
  await until('the first has joined', () => Promise.resolve(/^joined\b/m.test(fleet.log(first))))
  fleet.beginJoin(second, ticket)
  expect(await fleet.ended(second)).toBe(1)
  expect(fleet.log(second)).toMatch(/flotilla: .*ticket/)
  expect(fleet.log(second)).not.toContain('    at ')
})
