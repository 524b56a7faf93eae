import { afterAll, beforeEach, expect, test } from 'vitest'
import type { RecoveredAdmin } from '../../src/api/cluster/recover-admin.ts'
import { createApi } from '../../src/api/server.ts'
import { createSystemActor } from '../../src/ports/actor.ts'
import { type Body, CallerOf, fabric, management } from '../api/support/caller.ts'
import { admin, user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newIdentity, shown } from '../api/support/network.ts'

const { controller, root } = await controllerForFile()
const password = 'a new one for the administrator'
const atSocket = createApi(controller.parts).listener({
  apis: ['fabric'],
  https: null,
  socketCaller: () => createSystemActor({ name: 'uid:1000 (op)' }),
})
afterAll(() => atSocket.close())

async function recovering(payload: Record<string, unknown>): Promise<Body> {
  const url = `${fabric}/cluster/recover-admin`
  return JSON.parse((await atSocket.inject({ method: 'POST', url, payload })).payload) as Body
}

async function recover(payload: Record<string, unknown> = { password }): Promise<RecoveredAdmin> {
  const body = await recovering(payload)
  expect(body.error).toBeUndefined()
  return body.data as RecoveredAdmin
}

async function codeOf(payload: Record<string, unknown>): Promise<string> {
  return (await recovering(payload)).error?.code ?? 'none'
}

async function changed(url: string, body: object): Promise<void> {
  const reply = await root.call('PATCH', `${management}/${url}`, body)
  expect(reply.status, reply.text).toBe(200)
}

/**
 * Adds another administrator with a separate policy, without which the default policy could not be
 * changed.
 */
async function addSpareAdmin(): Promise<void> {
  const { primary } = await shown(root, `${management}/auth-policies/default`)
  const secondary = { requireTotp: false }
  const body = { name: 'of the spare one', primary, secondary }
  const authPolicyId = await made(root, `${management}/auth-policies`, body)
  const spare = { isAdmin: true, authPolicyId }
  const identityId = await newIdentity(root, 'spare', spare)
  const credential = { identityId, method: 'updb', username: 'spare', password }
  await made(root, `${management}/authenticators`, credential)
}

async function logInStatus(credentials: { username: string; password: string }): Promise<number> {
  const caller = new CallerOf(controller)
  const reply = await caller.logIn(credentials)
  if (reply.status !== 200) return reply.status
  return (await caller.get(`${management}/identities`)).status
}

beforeEach(() => {
  root.token = controller.openSession('admin-id')
})

test('recover-admin replaces a lost password, and ends the sessions opened with the lost password', async () => {
  expect(await recover()).toEqual({
    identityId: 'admin-id',
    name: 'Default Admin',
    username: 'admin',
    authPolicyId: 'default',
  })
  expect((await root.get(`${management}/identities`)).status).toBe(401)
  expect(await logInStatus(admin)).toBe(401)
  expect(await logInStatus({ username: 'admin', password })).toBe(200)
})

test('recover-admin ends a lockout and enables a disabled identity', async () => {
  const primary = { updb: { maxAttempts: 1, lockoutDurationMinutes: 0 } }
  await changed('auth-policies/default', { primary })
  expect(await logInStatus({ username: 'mallory', password: user.password })).toBe(401)
  expect(await logInStatus({ username: 'admin', password: 'a wrong guess' })).toBe(401)
  expect(await logInStatus({ username: 'admin', password })).toBe(401)
  await recover()
  expect(await logInStatus({ username: 'admin', password })).toBe(200)
  expect((await recover({ password, name: 'Mallory' })).identityId).toBe('mallory-id')
  expect(await logInStatus({ username: 'mallory', password })).toBe(200)
})

test('recover-admin gives the administrator an auth policy that permits log-in, and leaves the old policy of other identities unchanged', async () => {
  await addSpareAdmin()
  await changed('auth-policies/default', { secondary: { requireTotp: true } })
  expect(await logInStatus({ username: 'admin', password })).toBe(401)
  const { authPolicyId } = await recover()
  expect(authPolicyId).toMatch(/^recovery-/)
  expect(await logInStatus({ username: 'admin', password })).toBe(200)
  expect(controller.state.get('authPolicy', 'default')?.['secondary']).toMatchObject({
    requireTotp: true,
  })
  root.token = controller.openSession('admin-id')
  await changed('auth-policies/default', { secondary: { requireTotp: false } })
  await changed(`auth-policies/${authPolicyId}`, { primary: { updb: { allowed: false } } })
  expect((await recover()).authPolicyId).toBe('default')
})

test('recover-admin gives a password to an administrator without one, under the same user name', async () => {
  const body = { name: 'certified', type: 'User', isAdmin: true }
  await made(root, `${management}/identities`, body)
  expect(await recover({ name: 'certified', password })).toMatchObject({ username: 'certified' })
  expect(await logInStatus({ username: 'certified', password })).toBe(200)
})

test('recover-admin validates the new password against the auth policy that applies to the next log-in', async () => {
  await changed('auth-policies/default', { primary: { updb: { requireNumberChar: true } } })
  const { error } = await recovering({ password: 'without any digit' })
  expect(error?.cause).toMatchObject({ field: 'password', reason: 'password should have a digit' })
  expect((await recover({ password: 'with 1 digit' })).username).toBe('admin')
  root.token = controller.openSession('admin-id')
  await changed('auth-policies/default', { primary: { updb: { requireNumberChar: false } } })
})

test('recover-admin does not make an identity an administrator, and refuses a short password', async () => {
  expect(await codeOf({ name: 'Alice', password })).toBe('NOT_FOUND')
  expect(await codeOf({ name: 'nobody', password })).toBe('NOT_FOUND')
  expect(await codeOf({ password: '1234567' })).toBe('COULD_NOT_VALIDATE')
  expect(await codeOf({})).toBe('COULD_NOT_VALIDATE')
})

test('recover-admin writes into the audit log who was recovered and from where, but not the password', async () => {
  await recover()
  root.token = controller.openSession('admin-id')
  const reply = await root.get(`${fabric}/audit?filter=${encodeURIComponent('sort by index desc')}`)
  expect(reply.status, reply.text).toBe(200)
  expect(reply.text).not.toContain(password)
  expect(reply.text).not.toContain('argon2')
  const records = reply.body.data as { entity: string; entityId: string; actor: { name: string } }[]
  const found = records.find(({ actor }) => actor.name === 'uid:1000 (op)')
  expect(found).toMatchObject({ entity: 'identity', entityId: 'admin-id' })
})
