import { afterEach, expect, test } from 'vitest'
import { CallerOf, management, type Reply } from '../api/support/caller.ts'
import { admin, user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newIdentity, shown } from '../api/support/network.ts'

// The attack: an attacker who may change auth policies, or has the session of an administrator,
// makes wrong passwords lock identities, and then tries one wrong password for each administrator.

const { controller, root, sessionOf } = await controllerForFile()
const policy = `${management}/auth-policies/default`
const minute = 60_000
const lockMs = 15 * minute
let source = 0

/**
 * Tries a log-in, each time from a different address, because limits per source do not stop a
 * guesser with many addresses.
 */
function logIn(credentials: { username: string; password: string }): Promise<Reply> {
  const caller = new CallerOf(controller)
  source += 1
  caller.address = `10.2.${Math.floor(source / 250)}.${source % 250}`
  return caller.logIn(credentials)
}

async function lockAfter(maxAttempts: number, lockoutDurationMinutes: number): Promise<void> {
  const id = await newIdentity(root, `attacker ${source}`, { permissions: ['auth-policy.update'] })
  const body = { primary: { updb: { maxAttempts, lockoutDurationMinutes } } }
  const reply = await sessionOf(id).call('PATCH', policy, body)
  expect(reply.status, reply.text).toBe(200)
}

function guess(username: string): Promise<Reply> {
  return logIn({ username, password: 'a wrong password' })
}

afterEach(async () => {
  root.token = controller.openSession('admin-id')
  expect((await root.call('POST', `${management}/identities/admin-id/enable`)).status).toBe(200)
})

test.each([
  ['without an end', 0],
  ['for ten years', 10 * 365 * 24 * 60],
  ['for 16 minutes', 16],
])(
  'a policy that locks passwords %s locks an administrator’s password for only 15 minutes',
  async (_end, minutes) => {
    await lockAfter(1, minutes)
    expect((await guess(admin.username)).status).toBe(401)
    expect((await logIn(admin)).status).toBe(401)
    controller.clock.advance(lockMs - 1)
    expect((await logIn(admin)).status).toBe(401)
    controller.clock.advance(1)
    expect((await logIn(admin)).status).toBe(200)
  },
)

test('each wrong password after a lock has ended locks an administrator’s password again, which limits guesses', async () => {
  await lockAfter(3, 0)
  for (let attempt = 0; attempt < 3; attempt += 1) await guess(admin.username)
  for (let hour = 0; hour < 4; hour += 1) {
    controller.clock.advance(lockMs)
    expect((await guess(admin.username)).status).toBe(401)
    expect((await logIn(admin)).status).toBe(401)
  }
  expect(controller.state.get('passwordAttempts', 'admin-updb')).toMatchObject({ count: 7 })
})

test('if a policy locks passwords for less than 15 minutes, an administrator’s password is locked for just that time', async () => {
  await lockAfter(2, 5)
  for (let attempt = 0; attempt < 2; attempt += 1) await guess(admin.username)
  controller.clock.advance(5 * minute - 1)
  expect((await logIn(admin)).status).toBe(401)
  controller.clock.advance(1)
  expect((await guess(admin.username)).status).toBe(401)
  expect((await logIn(admin)).status).toBe(200)
})

test('the record of an administrator shows when the lock of the password ends', async () => {
  await lockAfter(1, 0)
  await guess(admin.username)
  const lastAt = Number(controller.state.get('passwordAttempts', 'admin-updb')?.['lastAt'])
  expect(await shown(root, `${management}/identities/admin-id`)).toMatchObject({
    passwordLock: {
      lockedAt: new Date(lastAt).toISOString(),
      lockedUntil: new Date(lastAt + lockMs).toISOString(),
    },
  })
})

test('a lock without an end stays on an ordinary identity, and ends after 15 minutes if the identity becomes an administrator', async () => {
  await lockAfter(1, 0)
  await guess(user.username)
  controller.clock.advance(20 * minute)
  expect((await logIn(user)).status).toBe(401)
  root.token = controller.openSession('admin-id')
  const id = await newIdentity(root, 'promoted', {})
  const credential = {
    identityId: id,
    method: 'updb',
    username: 'promoted',
    password: 'a password',
  }
  await made(root, `${management}/authenticators`, credential)
  await guess('promoted')
  expect(
    (await root.call('PATCH', `${management}/identities/${id}`, { isAdmin: true })).status,
  ).toBe(200)
  controller.clock.advance(lockMs)
  expect((await logIn(credential)).status).toBe(200)
})
