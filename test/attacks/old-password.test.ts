import { expect, test } from 'vitest'
import { CallerOf, client, management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { setPasswordHash, weakHash } from './support/password-hashes.ts'

// The attack: an attacker knows a user's password and logs in with it. After the user has changed
// the password, the attacker continues to use the sessions and tokens of that log-in.

const { controller, root } = await controllerForFile()
const whoAmI = `${client}/current-identity`

async function setPassword(password: string): Promise<void> {
  const reply = await root.call('PATCH', `${management}/authenticators/alice-updb`, { password })
  expect(reply.status, reply.text).toBe(200)
}

test('no session that was opened with the old password remains valid', async () => {
  const attacker = new CallerOf(controller)
  expect((await attacker.logIn(user, client)).status).toBe(200)
  await setPassword('the second password')
  expect((await attacker.get(whoAmI)).status).toBe(401)
})

test('a log-in opens no session if the password changes during the log-in', async () => {
  await setPassword(user.password)
  const attacker = new CallerOf(controller)
  const { cluster } = controller
  const { propose } = cluster
  cluster.propose = async (input) => {
    cluster.propose = propose
    await setPassword('the third password')
    return propose.call(cluster, input)
  }
  const { indexes } = controller.state.table('apiSession')
  expect((await attacker.logIn(user, client)).status).toBe(401)
  expect([...indexes.ids('identityId', 'alice-id')]).toEqual([])
})

test('a log-in that upgrades the hash of the old password does not overwrite a new password that was set meanwhile', async () => {
  setPasswordHash(controller, await weakHash(user.password))
  const { cluster } = controller
  const { propose } = cluster
  cluster.propose = async (input) => {
    cluster.propose = propose
    await setPassword('the fourth password')
    return propose.call(cluster, input)
  }
  const attacker = new CallerOf(controller)
  expect((await attacker.logIn(user, client)).status).toBe(401)
  expect((await attacker.logIn(user, client)).status).toBe(401)
  const holder = { ...user, password: 'the fourth password' }
  expect((await attacker.logIn(holder, client)).status).toBe(200)
})
