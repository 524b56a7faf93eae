import { afterEach, beforeEach, expect, test } from 'vitest'
import { CallerOf, client, management } from './support/caller.ts'
import { startController, type TestController, user } from './support/controller.ts'

let controller: TestController
let root: CallerOf
let alice: CallerOf

beforeEach(async () => {
  controller = await startController()
  root = new CallerOf(controller)
  alice = new CallerOf(controller)
  root.token = controller.openSession('admin-id')
})
afterEach(async () => {
  await controller.close()
  expect(controller.errors).toEqual([])
})

const identity = `${management}/identities/alice-id`
const MINUTE_MS = 60_000

async function disable(durationMinutes: number): Promise<Readonly<Record<string, unknown>>> {
  const reply = await root.call('POST', `${identity}/disable`, { durationMinutes })
  expect(reply.status, reply.text).toBe(200)
  return (await root.get(identity)).body.data as Readonly<Record<string, unknown>>
}

async function logIn(): Promise<number> {
  return (await alice.logIn(user, client)).status
}

async function own(): Promise<number> {
  return (await alice.get(`${client}/current-identity`)).status
}

test('an identity that is disabled for some minutes is refused until disabledUntil, with an existing session and at log-in', async () => {
  expect(await logIn()).toBe(200)
  const startMs = controller.clock.nowMs()
  const shown = await disable(5)
  expect(shown).toMatchObject({
    disabled: true,
    disabledAt: new Date(startMs).toISOString(),
    disabledUntil: new Date(startMs + 5 * MINUTE_MS).toISOString(),
    hasApiSession: false,
  })
  expect(await own()).toBe(401)
  expect(await logIn()).toBe(401)
  controller.clock.advance(4 * MINUTE_MS)
  expect(await logIn()).toBe(401)
  controller.clock.advance(MINUTE_MS)
  expect(await logIn()).toBe(200)
  expect(await own()).toBe(200)
})

test('an identity disabled for 0 minutes stays disabled permanently', async () => {
  const shown = await disable(0)
  expect(shown).toMatchObject({ disabled: true })
  expect(shown).not.toHaveProperty('disabledUntil')
  controller.clock.advance(1000 * 365 * 24 * 60 * MINUTE_MS)
  root.token = controller.openSession('admin-id')
  expect((await root.get(identity)).body.data).toMatchObject({ disabled: true })
  expect(await logIn()).toBe(401)
})

test('an identity that is enabled again can log in immediately, and its record does not show that it was disabled', async () => {
  await disable(0)
  expect(await logIn()).toBe(401)
  expect((await alice.call('POST', `${identity}/enable`)).status).toBe(401)
  expect((await root.call('POST', `${identity}/enable`)).status).toBe(200)
  const shown = (await root.get(identity)).body.data
  expect(shown).toMatchObject({ disabled: false })
  expect(shown).not.toHaveProperty('disabledAt')
  expect(shown).not.toHaveProperty('disabledUntil')
  expect(await logIn()).toBe(200)
  expect(await own()).toBe(200)
})
