import { beforeEach, describe, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { CallerOf, client, management, type Reply } from './support/caller.ts'
import { user } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root, sessionOf } = await controllerForFile()
const policy = `${management}/auth-policies/default`
const wrong = { username: user.username, password: 'not the one of alice' }
let source = 0

/**
 * Tries a password, each time from a different source address, so that no limit per source
 * interferes.
 */
function guess(credentials: { username: string; password: string } = wrong): Promise<Reply> {
  const caller = new CallerOf(controller)
  source += 1
  caller.address = `10.1.${Math.floor(source / 250)}.${source % 250}`
  return caller.logIn(credentials)
}

async function limitTo(maxAttempts: number, lockoutDurationMinutes = 0): Promise<void> {
  const body = { primary: { updb: { maxAttempts, lockoutDurationMinutes } } }
  expect((await root.call('PATCH', policy, body)).status).toBe(200)
}

function attemptsLogged(): number {
  return controller.cluster.proposals.filter(({ kind }) => kind === CommandKind.PASSWORD_ATTEMPT)
    .length
}

async function lockOut(times = 3): Promise<void> {
  for (let attempt = 0; attempt < times; attempt += 1) expect((await guess()).status).toBe(401)
}

beforeEach(async () => {
  root.token = controller.openSession('admin-id')
  expect((await root.call('POST', `${management}/identities/alice-id/enable`)).status).toBe(200)
  controller.cluster.proposals = []
})

describe('an auth policy that limits password attempts', () => {
  test('accepts the right password until the maximum number of consecutive wrong passwords is reached', async () => {
    await limitTo(3)
    await lockOut(2)
    expect((await guess(user)).status).toBe(200)
    await lockOut(2)
    expect((await guess(user)).status).toBe(200)
    await lockOut(3)
    const refused = await guess(user)
    expect(refused.status).toBe(401)
    expect(refused.body.error?.code).toBe('INVALID_AUTH')
  })

  test('shows the lock at the identity and in the list until an administrator enables the identity, but does not show the identity as disabled', async () => {
    const url = `${management}/identities/alice-id`
    const shown = async () => (await root.get(url)).body.data as Record<string, unknown>
    await limitTo(3, 5)
    await lockOut(2)
    expect(await shown()).not.toHaveProperty('passwordLock')
    await lockOut(1)
    const atMs = Number(controller.state.get('passwordAttempts', 'alice-updb')?.['lastAt'])
    const passwordLock = {
      lockedAt: new Date(atMs).toISOString(),
      lockedUntil: new Date(atMs + 5 * 60_000).toISOString(),
    }
    expect(await shown()).toMatchObject({ passwordLock, disabled: false })
    const filter = encodeURIComponent('id = "alice-id"')
    const listed = await root.get(`${management}/identities?filter=${filter}`)
    expect(listed.body.data).toMatchObject([{ passwordLock }])
    await limitTo(3, 0)
    expect(await shown()).toMatchObject({ passwordLock: { ...passwordLock, lockedUntil: null } })
    expect((await root.call('POST', `${url}/enable`)).status).toBe(200)
    expect(await shown()).not.toHaveProperty('passwordLock')
  })

  test('gives the same response for a locked password, a wrong password and an unknown user name', async () => {
    await limitTo(3)
    const first = await guess()
    await lockOut(2)
    const replies = [
      first,
      await guess(),
      await guess(user),
      await guess({ username: 'nobody here', password: 'whatever it is' }),
    ]
    const shown = replies.map(({ status, body, headers }) => [
      status,
      { ...body.error, requestId: '' },
      Object.keys(headers).sort(),
    ])
    for (const one of shown) expect(one).toEqual(shown[0])
  })

  test('locks the password for the configured minutes, and then restarts the count', async () => {
    await limitTo(2, 5)
    await lockOut(2)
    controller.clock.advance(5 * 60_000 - 1)
    expect((await guess(user)).status).toBe(401)
    controller.clock.advance(1)
    expect((await guess()).status).toBe(401)
    expect((await guess(user)).status).toBe(200)
  })

  test('locks the password, if no minutes are configured, until an administrator enables the identity or sets its password', async () => {
    await limitTo(1)
    await lockOut(1)
    controller.clock.advance(25 * 60_000)
    root.token = controller.openSession('admin-id')
    expect((await guess(user)).status).toBe(401)
    const enabled = await root.call('POST', `${management}/identities/alice-id/enable`)
    expect(enabled.status).toBe(200)
    expect((await guess(user)).status).toBe(200)
    await lockOut(1)
    const set = await root.call('PATCH', `${management}/authenticators/alice-updb`, {
      password: user.password,
    })
    expect(set.status).toBe(200)
    expect((await guess(user)).status).toBe(200)
  })

  test('causes one log entry per wrong attempt, and none while the password is locked', async () => {
    await limitTo(3)
    await lockOut(3)
    expect(attemptsLogged()).toBe(3)
    await lockOut(5)
    expect(attemptsLogged()).toBe(3)
    const locked = controller.state.get('passwordAttempts', 'alice-updb')
    expect(locked?.['count']).toBe(3)
  })

  test('causes an audit line only for the attempt that locks the password', async () => {
    await limitTo(3)
    const before = controller.machine.appliedIndex
    await lockOut(3)
    const filter = encodeURIComponent(`index > ${before}`)
    const reply = await root.get(`/fabric/v1/audit?filter=${filter}`)
    expect(reply.status, reply.text).toBe(200)
    const records = reply.body.data as Record<string, unknown>[]
    expect(records).toHaveLength(1)
    expect(records[0]).toMatchObject({
      entity: 'authenticator',
      entityId: 'alice-updb',
      fields: ['lockout'],
    })
  })

  test('also counts wrong entries of the current password when a password is changed, and resets the count after a right entry', async () => {
    await limitTo(3)
    const alice = sessionOf('alice-id')
    const own = `${client}/current-identity/authenticators/alice-updb`
    const change = (currentPassword: string, more: object = {}): Promise<Reply> =>
      alice.call('PATCH', own, { currentPassword, ...more })
    for (let time = 0; time < 2; time += 1) {
      expect((await change('not the right one')).status).toBe(401)
      expect((await change(user.password, { tags: { time } })).status).toBe(200)
    }
    // The password was correct, although the log-in failed for another reason.
    for (let time = 0; time < 4; time += 1) {
      expect((await change(user.password, { username: 'admin' })).status).toBe(400)
    }
    await lockOut(3)
    expect((await change(user.password)).status).toBe(401)
  })
})

test('a wrong password writes no log entry if the auth policy has no limit', async () => {
  await limitTo(0)
  controller.cluster.proposals = []
  await lockOut(5)
  expect(controller.cluster.proposals).toEqual([])
  expect(controller.state.table('passwordAttempts').rows.size).toBe(0)
  expect((await guess(user)).status).toBe(200)
})

test('the count of wrong passwords is deleted with the authenticator', async () => {
  await limitTo(5)
  const made = await root.call('POST', `${management}/identities`, {
    name: 'short-lived',
    type: 'User',
    isAdmin: false,
  })
  const identityId = (made.body.data as { id: string }).id
  const credential = { identityId, method: 'updb', username: 'short', password: 'a password' }
  await root.call('POST', `${management}/authenticators`, credential)
  await guess({ username: 'short', password: 'another password' })
  expect(controller.state.table('passwordAttempts').rows.size).toBe(1)
  expect((await root.call('DELETE', `${management}/identities/${identityId}`)).status).toBe(200)
  expect(controller.state.table('passwordAttempts').rows.size).toBe(0)
})
