import { beforeAll, expect, test } from 'vitest'

import { newShortId } from '../../src/lib/random.ts'
import { client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { Authenticator, policyOfCodes } from './support/mfa.ts'
import { claimsOf } from './support/network.ts'
import { OidcClient, type OidcReply } from './support/oidc.ts'
import { raiseLevel } from './support/raise-level.ts'

const { controller, root } = await controllerForFile()
const enrollPath = '/oidc/login/totp/enroll'
const password = 'a long enough password'
let authPolicyId = ''

beforeAll(async () => {
  await raiseLevel(controller)
  authPolicyId = await policyOfCodes(root)
})

/** An identity whose policy requires a TOTP code, and that has not enrolled TOTP yet. */
async function person(): Promise<{ readonly id: string; readonly username: string }> {
  const username = `name-${newShortId()}`
  const made = await root.call('POST', `${management}/identities`, {
    name: username,
    type: 'User',
    isAdmin: false,
    authPolicyId,
  })
  const { id } = made.body.data as { id: string }
  const credential = { method: 'updb', identityId: id, username, password }
  await root.call('POST', `${management}/authenticators`, credential)
  return { id, username }
}

/** A log-in that has passed the password and waits for the next step. */
async function pending(username: string) {
  const oidc = new OidcClient(controller)
  const id = await oidc.begin()
  const step = await oidc.send('POST', '/oidc/login/password', { id, username, password })
  const json = (method: 'POST' | 'DELETE', path: string, code?: string): Promise<OidcReply> =>
    oidc.send(method, path, JSON.stringify({ id, ...(code === undefined ? {} : { code }) }), {
      'content-type': 'application/json',
    })
  return { oidc, id, step, json }
}

test('an identity whose policy requires a code enrolls in MFA during its log-in, which then continues', async () => {
  const { id: identityId, username } = await person()
  const { oidc, step, json } = await pending(username)
  expect([step.status, step.headers['totp-required']]).toEqual([200, 'true'])
  expect(step.json['authQueries']).toMatchObject([{ typeId: 'TOTP', isTotpEnrolled: false }])
  const begun = await json('POST', enrollPath)
  expect(begun.status, begun.text).toBe(201)
  expect(begun.json).toMatchObject({ id: identityId, isVerified: false })
  expect(Object.keys(begun.json)).toEqual(expect.arrayContaining(['createdAt', 'updatedAt']))
  const app = new Authenticator(controller, begun.json as never)
  const [recoveryCode = ''] = app.recoveryCodes
  for (const code of [app.wrongCode(), recoveryCode, '', 'x'.repeat(200)]) {
    const wrong = await json('POST', `${enrollPath}/verify`, code)
    expect([wrong.status, wrong.json['code']]).toEqual([400, 'MFA_INVALID_TOKEN'])
  }
  const verified = await json('POST', `${enrollPath}/verify`, app.code())
  expect(verified.status, verified.text).toBe(302)
  const { status, json: tokens } = await oidc.redeem(await oidc.codeOf(verified))
  expect(status).toBe(200)
  expect(claimsOf(tokens['access_token'])).toMatchObject({ amr: ['password', 'totp'] })
  const answer = await controller.app.inject({
    url: `${client}/current-identity`,
    headers: { host: 'any', authorization: `Bearer ${String(tokens['access_token'])}` },
  })
  expect(answer.statusCode).toBe(200)
  const { step: again } = await pending(username)
  expect(again.json['authQueries']).toMatchObject([{ isTotpEnrolled: true }])
})

test('the request that OpenZiti tunnelers send removes an unverified MFA enrollment', async () => {
  const { username } = await person()
  const { oidc, id, json } = await pending(username)
  const query = `${enrollPath}?id=${encodeURIComponent(id)}`
  expect((await oidc.send('DELETE', query, '')).status).toBe(404)
  expect((await json('POST', enrollPath)).status).toBe(201)
  expect((await oidc.send('DELETE', query, '')).status).toBe(200)
  expect((await oidc.send('DELETE', query)).status).toBe(404)
  expect((await json('POST', `${enrollPath}/verify`, '123456')).status).toBe(404)
})

test('a log-in can begin a second MFA enrollment only after removing the first one', async () => {
  const { username } = await person()
  const { json } = await pending(username)
  expect((await json('POST', enrollPath)).status).toBe(201)
  const again = await json('POST', enrollPath)
  expect([again.status, again.json['code']]).toEqual([409, 'MFA_EXISTS'])
  expect((await json('DELETE', enrollPath)).status).toBe(200)
  expect((await json('POST', enrollPath)).status).toBe(201)
})

test('an MFA enrollment that an earlier log-in began is replaced, because its secret may be known to others', async () => {
  const { username } = await person()
  const thief = await pending(username)
  const seen = await thief.json('POST', enrollPath)
  controller.clock.advance(1000)
  const { json } = await pending(username)
  const begun = await json('POST', enrollPath)
  expect(begun.status, begun.text).toBe(201)
  expect(begun.json['provisioningUrl']).not.toBe(seen.json['provisioningUrl'])
})

test('a password alone cannot replace or remove a verified TOTP factor', async () => {
  const { username } = await person()
  const first = await pending(username)
  const begun = await first.json('POST', enrollPath)
  const app = new Authenticator(controller, begun.json as never)
  await first.json('POST', `${enrollPath}/verify`, app.code())
  const thief = await pending(username)
  const replaced = await thief.json('POST', enrollPath)
  expect([replaced.status, replaced.json['code']]).toEqual([409, 'MFA_EXISTS'])
  expect((await thief.json('DELETE', enrollPath)).status).toBe(400)
  expect((await thief.json('POST', `${enrollPath}/verify`, app.freshCode())).status).toBe(404)
})

test('a log-in can enroll in MFA only after primary authentication', async () => {
  const oidc = new OidcClient(controller)
  const id = await oidc.begin()
  for (const [method, path] of [
    ['POST', enrollPath],
    ['DELETE', enrollPath],
    ['POST', `${enrollPath}/verify`],
  ] as const) {
    for (const shown of [id, 'made up']) {
      const refused = await oidc.send(method, path, { id: shown, code: '123456' })
      expect([refused.status, refused.json['code']]).toEqual([401, 'UNAUTHORIZED'])
    }
  }
})
