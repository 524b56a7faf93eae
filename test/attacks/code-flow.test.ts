import { expect, test } from 'vitest'

import { CallerOf, client, management } from '../api/support/caller.ts'
import { admin } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { turnOnMfa } from '../api/support/mfa.ts'
import { made } from '../api/support/network.ts'
import { OidcClient } from '../api/support/oidc.ts'
import { raiseLevel } from '../api/support/raise-level.ts'

// The attack: somebody who has an id, a code or a token of the code flow uses it for more than it was given for.

const { controller, root } = await controllerForFile()
await raiseLevel(controller)
const password = 'a long enough password'
let serial = 0

async function newPerson(): Promise<string> {
  serial += 1
  const username = `person ${serial}`
  const identityId = await made(root, `${management}/identities`, {
    name: username,
    type: 'User',
    isAdmin: false,
  })
  const authenticator = { method: 'updb', identityId, username, password }
  await made(root, `${management}/authenticators`, authenticator)
  return username
}

/** Somebody with a second factor, and its recovery codes. */
async function newPersonWithCodes(): Promise<{ username: string; codes: readonly string[] }> {
  const username = await newPerson()
  const caller = new CallerOf(controller)
  await caller.logIn({ username, password }, client)
  const { recoveryCodes } = await turnOnMfa(controller, caller)
  return { username, codes: recoveryCodes }
}

async function statusAt(url: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  return (await controller.app.inject({ method: 'GET', url, headers })).statusCode
}

test('a factor given under an id counts for no other identity', async () => {
  const mallory = await newPersonWithCodes()
  const alice = await newPersonWithCodes()
  const oidc = new OidcClient(controller)
  const id = await oidc.begin()
  const logIn = { id, username: mallory.username, password }
  expect((await oidc.send('POST', '/oidc/login/password', logIn)).status).toBe(200)
  const [code = ''] = mallory.codes
  expect((await oidc.send('POST', '/oidc/login/totp', { id, code })).status).toBe(302)
  const other = { id, username: alice.username, password }
  expect((await oidc.send('POST', '/oidc/login/password', other)).status).toBe(401)
  const queries = await oidc.send('GET', `/oidc/login/auth-queries?id=${encodeURIComponent(id)}`)
  expect(queries.status).toBe(401)
})

test('a code is worth nothing without the verifier of the client that asked for it', async () => {
  const username = await newPerson()
  const oidc = new OidcClient(controller)
  const id = await oidc.begin()
  const step = await oidc.send('POST', '/oidc/login/password', { id, username, password })
  const thief = new OidcClient(controller)
  expect((await thief.redeem(await oidc.codeOf(step))).status).toBe(400)
})

test('a second code of a flow ends the session that the first one made', async () => {
  const username = await newPerson()
  const oidc = new OidcClient(controller)
  const id = await oidc.begin()
  const step = await oidc.send('POST', '/oidc/login/password', { id, username, password })
  const [first, second] = [await oidc.codeOf(step), await oidc.codeOf(step)]
  const { json } = await oidc.redeem(first)
  const token = String(json['access_token'])
  expect(await statusAt(`${client}/current-identity`, token)).toBe(200)
  expect((await oidc.redeem(second)).status).toBe(400)
  expect(await statusAt(`${client}/current-identity`, token)).toBe(401)
})

test('a token that was used as a client manages nothing, whoever it is of', async () => {
  const oidc = new OidcClient(controller)
  const { access_token: token } = await oidc.logIn(admin.username, admin.password)
  expect(await statusAt(`${client}/current-identity`, token)).toBe(200)
  expect(await statusAt(`${management}/identities`, token)).toBe(401)
})

test('a refresh token is no access token', async () => {
  const oidc = new OidcClient(controller)
  const { refresh_token: token } = await oidc.logIn(await newPerson(), password)
  const headers = { authorization: `Bearer ${token}` }
  expect((await oidc.send('GET', '/oidc/userinfo', undefined, headers)).status).toBe(401)
})

test('a token of a session that waits for its code is not made', async () => {
  const { username } = await newPersonWithCodes()
  const oidc = new OidcClient(controller)
  const id = await oidc.begin()
  const pending = await oidc.send('POST', '/oidc/login/password', { id, username, password })
  expect([pending.status, pending.headers['location']]).toEqual([200, undefined])
  expect((await oidc.redeem(id)).status).toBe(400)
  expect(
    (await oidc.send('GET', `/oidc/authorize/callback?id=${encodeURIComponent(id)}`)).status,
  ).toBe(400)
})
