import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { CommandKind, PasswordRehashSchema } from '../../proto/gen/command_pb.ts'
import { CallerOf, client } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { anySession, commandData } from '../support/commands.ts'
import { setPasswordHash, weakHash } from './support/password-hashes.ts'

// The attack: password hashes of a migrated network have other parameters. They may be too
// expensive for a controller, or so cheap that the duration of a response shows which names exist.

const { controller } = await controllerForFile()
const { machine, state } = controller
const whoAmI = `${client}/current-identity`

const logIn = async (password = user.password, username = user.username): Promise<number> => {
  const caller = new CallerOf(controller)
  return (await caller.logIn({ username, password }, client)).status
}

async function entriesOf(act: () => Promise<unknown>): Promise<number> {
  const before = machine.appliedIndex
  await act()
  return machine.appliedIndex - before
}

const storedHash = (): string => state.get('authenticator', 'alice-updb')?.passwordHash ?? ''

test('A weak password hash of a migrated network is replaced once, at the next log-in, and existing sessions remain valid', async () => {
  setPasswordHash(controller, await weakHash(user.password))
  const earlier = new CallerOf(controller)
  earlier.token = controller.openSession('alice-id')
  // One log entry replaces the hash, and one opens the session.
  expect(await entriesOf(() => logIn())).toBe(2)
  expect(storedHash()).toMatch(/^\$argon2id\$v=19\$m=19456,p=1,t=2\$/)
  expect((await earlier.get(whoAmI)).status).toBe(200)
  expect(await entriesOf(() => logIn())).toBe(1)
  expect(await logIn()).toBe(200)
})

test('A log-in with a wrong password does not replace the weak hash', async () => {
  const weak = await weakHash(user.password)
  setPasswordHash(controller, weak)
  expect(await entriesOf(() => logIn('a guess that is wrong'))).toBe(0)
  expect(storedHash()).toBe(weak)
})

test('A session cannot store the hash of a password that was not verified in that session', async () => {
  const passwordHash = await weakHash('of an attacker')
  const message = create(PasswordRehashSchema, { authenticatorId: 'alice-updb', passwordHash })
  const payload = toBinary(PasswordRehashSchema, message)
  controller.openSession('admin-id')
  const [session] = [...state.table('apiSession').rows.values()].map(({ record }) => record)
  const { id: sessionId = '', identityId = '' } = session ?? {}
  const actor = anySession({ identityId, sessionId })
  const before = storedHash()
  const data = commandData(CommandKind.PASSWORD_REHASH, payload, actor)
  expect(controller.cluster.apply(data).outcome).toMatchObject({ ok: false, code: 'UNAUTHORIZED' })
  expect(storedHash()).toBe(before)
})

test('Several log-ins at the same time replace a weak hash only once', async () => {
  setPasswordHash(controller, await weakHash(user.password))
  const count = await entriesOf(async () => {
    expect(await Promise.all([logIn(), logIn(), logIn()])).toEqual([200, 200, 200])
  })
  // Three sessions, and a rejected entry for each log-in that verified the password with the hash
  // before its replacement.
  expect(count).toBeGreaterThanOrEqual(4)
  expect(count).toBeLessThanOrEqual(6)
  expect(storedHash()).toContain('m=19456,p=1,t=2')
})

test.each([
  ['more than 19 MiB of memory', { memoryCost: 19_457, timeCost: 1, parallelism: 1 }],
  ['more than four passes', { timeCost: 5 }],
  ['more than four threads', { parallelism: 5 }],
])('A migrated hash that needs %s matches no password', async (_, cost) => {
  setPasswordHash(controller, await weakHash(user.password, cost))
  expect(await logIn()).toBe(401)
})

/**
 * Minimum processor time of all threads in several runs, ms, because other work of this process
 * only adds to it.
 */
async function quickest(username: string, place: number): Promise<number> {
  const took: number[] = []
  for (let at = 0; at < 7; at += 1) {
    const caller = new CallerOf(controller)
    caller.address = `10.${place}.${at}.1`
    const before = process.cpuUsage()
    const credentials = { username, password: 'a guess that is wrong' }
    expect((await caller.logIn(credentials, client)).status).toBe(401)
    const { user: ofUser, system } = process.cpuUsage(before)
    took.push((ofUser + system) / 1000)
  }
  return Math.min(...took)
}

test('A guess for a user with a weak hash takes at least half as long as a guess for an unknown user name', async () => {
  setPasswordHash(controller, await weakHash(user.password))
  const known = await quickest(user.username, 1)
  const unknown = await quickest('nobody', 2)
  // Without the additional work for the known name, the time would be five times shorter.
  expect(known).toBeGreaterThan(unknown / 2)
})
