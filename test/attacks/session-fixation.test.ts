import { expect, test } from 'vitest'
import { CallerOf, client, management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { giveCode, turnOnMfa } from '../api/support/mfa.ts'

const { controller, root, sessionOf } = await controllerForFile()

/**
 * The attack: an attacker who knows the password has a session that waits for the TOTP code of the
 * account's owner.
 */
test('a TOTP code that an identity gives in one session completes none of its other sessions', async () => {
  const app = await turnOnMfa(controller, sessionOf('alice-id'))
  const thief = new CallerOf(controller)
  expect((await thief.logIn(user, client)).status).toBe(200)
  const owner = new CallerOf(controller)
  expect((await owner.logIn(user, client)).status).toBe(200)
  expect((await giveCode(owner, app.freshCode())).status).toBe(200)
  expect((await owner.get(`${client}/current-identity`)).status).toBe(200)
  expect((await thief.get(`${client}/current-identity`)).status).toBe(401)
  await root.call('DELETE', `${management}/identities/alice-id/mfa`)
})

test('a log-in ignores a session ID that its client sends, and gets a new ID and token', async () => {
  const fixed = sessionOf('alice-id')
  const victim = new CallerOf(controller)
  const reply = await victim.call(
    'POST',
    `${client}/authenticate?method=password`,
    { ...user, id: 'chosen', token: fixed.token },
    { 'net-session': fixed.token ?? '', 'zt-session': fixed.token ?? '' },
  )
  expect(reply.status).toBe(200)
  const { id, token } = reply.body.data as { id: string; token: string }
  expect([id, token]).not.toContain('chosen')
  expect(token).not.toBe(fixed.token)
  expect(controller.state.get('apiSession', 'chosen')).toBeUndefined()
})
