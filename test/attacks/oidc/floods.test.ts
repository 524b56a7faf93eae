import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import { CommandKind, SessionCreateSchema } from '../../../proto/gen/command_pb.ts'
import { sessionsAwaitingCodeMax } from '../../../src/fsm/sessions/session.ts'
import { management } from '../../api/support/caller.ts'
import { OidcClient, redirectUri } from '../../api/support/oidc.ts'
import { commandData } from '../../support/commands.ts'
import { password, twoControllers } from './support.ts'

// The attack: somebody with or without an account sends many, unusual or invalid requests: to fill
// the state, to guess, or to act as another person.

const { controller, root, first, second, newClient, newPerson, newPersonWithCodes } =
  await twoControllers()
const form = { 'content-type': 'application/x-www-form-urlencoded' }

test('authorization requests, the pages of their log-ins, and invalid codes and tokens cause no log entry', async () => {
  const oidc = newClient()
  const before = controller.cluster.proposals.length
  for (let at = 0; at < 50; at += 1) {
    const id = await oidc.begin()
    await oidc.send('GET', `/oidc/login/password?id=${encodeURIComponent(id)}`)
    await oidc.send('GET', `/oidc/authorize/callback?id=${encodeURIComponent(id)}`)
    await oidc.send('POST', '/oidc/revoke', { token: `no token ${at}` })
    await oidc.send('GET', `/oidc/end_session?id_token_hint=${at}`)
    await oidc.redeem(`no code ${at}`)
    await oidc.refresh(`no token ${at}`)
  }
  expect(controller.cluster.proposals).toHaveLength(before)
})

test('a password alone can open only a few sessions that wait for their second factor', async () => {
  const { id: identityId } = await newPerson()
  const { findAll } = controller.machine
  const begun = (): readonly string[] =>
    findAll.call(controller.machine, 'apiSession', 'identityId', identityId).map(({ id }) => id)
  for (let at = 0; at < sessionsAwaitingCodeMax + 2; at += 1) {
    const id = `flow-${String(at).padStart(2, '0')}`
    const oidc = { clientId: 'native', codeHash: '', isBegun: false }
    const session = create(SessionCreateSchema, { id, identityId, ipAddress: '10.0.0.9', oidc })
    const payload = toBinary(SessionCreateSchema, session)
    controller.cluster.apply(commandData(CommandKind.SESSION_CREATE, payload))
    controller.clock.advance(1)
  }
  expect(begun()).toHaveLength(sessionsAwaitingCodeMax)
  // The oldest flows have been evicted.
  expect(begun()).not.toContain('flow-00')
  expect(begun()).toContain('flow-02')
})

describe('guesses in OIDC log-ins', () => {
  test('of a password lock the password after the maximum number of attempts, counted over all log-ins and controllers', async () => {
    const { username } = await newPerson()
    await root.call('PATCH', `${management}/auth-policies/default`, {
      primary: { updb: { maxAttempts: 3, lockoutDurationMinutes: 0 } },
    })
    try {
      const statuses: number[] = []
      for (let at = 0; at < 8; at += 1) {
        const oidc = new OidcClient({ app: at % 2 === 0 ? first : second })
        oidc.address = `10.0.0.${at}`
        statuses.push((await oidc.passed(username, `guess ${at}`)).status)
      }
      expect(new Set(statuses)).toEqual(new Set([401]))
      const right = newClient()
      right.address = '10.0.1.1'
      expect((await right.passed(username, password)).status).toBe(401)
    } finally {
      await root.call('PATCH', `${management}/auth-policies/default`, {
        primary: { updb: { maxAttempts: 0, lockoutDurationMinutes: 0 } },
      })
    }
  })

  test('of a TOTP code are limited per identity, together over all log-ins', async () => {
    const { username, app } = await newPersonWithCodes()
    const statuses: number[] = []
    for (let flow = 0; flow < 3; flow += 1) {
      const oidc = new OidcClient({ app: flow % 2 === 0 ? first : second })
      const id = await oidc.begin()
      await oidc.send('POST', '/oidc/login/password', { id, username, password })
      for (let at = 0; at < 5; at += 1) {
        const reply = await oidc.send('POST', '/oidc/login/totp', { id, code: app.wrongCode() })
        statuses.push(reply.status)
      }
    }
    expect(statuses.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => 400))
    expect(statuses.slice(10)).toEqual(Array.from({ length: 5 }, () => 429))
  })
})

describe('a request body of an OIDC log-in', () => {
  const posts = [
    '/oidc/authorize',
    '/oidc/authorize/callback',
    '/oidc/login/password',
    '/oidc/login/cert',
    '/oidc/login/ext-jwt',
    '/oidc/login/totp',
    '/oidc/oauth/token',
    '/oidc/revoke',
    '/oidc/end_session',
  ]

  test.each(posts)('that is neither a form nor JSON is refused at %s', async (path) => {
    const oidc = newClient()
    for (const type of ['multipart/form-data', 'text/plain', 'application/xml', 'text/html']) {
      const refused = await oidc.send('POST', path, 'id=x', { 'content-type': type })
      expect([type, refused.status]).toEqual([type, 415])
    }
  })

  test.each(posts)('of 100 KiB or 1 MiB is refused at %s', async (path) => {
    for (const length of [100 * 1024, 2 ** 20]) {
      const refused = await newClient().send('POST', path, `state=${'s'.repeat(length)}`, form)
      expect(refused.status).toBe(413)
    }
  })

  test.each(posts)(
    'causes neither a server error nor a code at %s if its JSON is no object or is nested too deeply',
    async (path) => {
      const oidc = newClient()
      const json = { 'content-type': 'application/json' }
      for (const text of [
        '[]',
        '1',
        '"x"',
        '{"id":{"a":1}}',
        `${'['.repeat(2000)}`,
        '{"__proto__":{}}',
      ]) {
        const reply = await oidc.send('POST', path, text, json)
        expect([text.slice(0, 20), reply.status < 500]).toEqual([text.slice(0, 20), true])
        expect(reply.headers['location'] ?? '').not.toContain('code=')
      }
    },
  )
})

describe('a request parameter of an OIDC log-in', () => {
  test('is treated as missing if it is repeated', async () => {
    const { username } = await newPerson()
    const oidc = newClient()
    const query = `client_id=native&client_id=openziti&redirect_uri=${encodeURIComponent(redirectUri)}`
    expect((await oidc.send('GET', `/oidc/authorize?${query}`)).status).toBe(400)
    const id = await oidc.begin()
    const twice = `id=${encodeURIComponent(id)}&username=${encodeURIComponent(username)}&password=x&password=${encodeURIComponent(password)}`
    expect((await oidc.send('POST', '/oidc/login/password', twice, form)).status).toBe(401)
    const code = await oidc.codeOf(await oidc.passed(username, password))
    const grant = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: 'native',
      redirect_uri: redirectUri,
      code_verifier: oidc.verifier,
      code,
    })
    const other = `${grant.toString()}&code_verifier=${'v'.repeat(43)}`
    expect((await oidc.send('POST', '/oidc/oauth/token', other, form)).status).toBe(400)
    // One OpenZiti client sends the state again, together with the code.
    const more = `${grant.toString()}&state=a&state=b&unknown=c`
    expect((await oidc.send('POST', '/oidc/oauth/token', more, form)).status).toBe(200)
  })

  test('with a secret is not accepted in the URL to which a form is posted', async () => {
    const { username } = await newPerson()
    const oidc = newClient()
    const id = await oidc.begin()
    const query = new URLSearchParams({ id, username, password })
    const step = await oidc.send('POST', `/oidc/login/password?${query.toString()}`, '', form)
    expect(step.status).toBe(401)
    const code = await oidc.codeOf(await oidc.passed(username, password))
    const grant = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: 'native',
      redirect_uri: redirectUri,
      code_verifier: oidc.verifier,
      code,
    })
    const path = `/oidc/oauth/token?${grant.toString()}`
    for (const body of ['', 'scope=openid']) {
      expect([body, (await oidc.send('POST', path, body, form)).status]).toEqual([body, 400])
    }
    const json = { 'content-type': 'application/json' }
    const mixed = await oidc.send('POST', path, '{"client_id":"native"}', json)
    expect(mixed.status).toBe(400)
  })

  test('that is too long is refused at the start of the log-in', async () => {
    const oidc = newClient()
    for (const name of ['state', 'nonce', 'code_challenge', 'redirect_uri', 'client_id']) {
      const reply = await oidc.authorize({ [name]: 'a'.repeat(4096) })
      expect([name, reply.status]).toEqual([name, 400])
    }
  })

  test('that is unknown is ignored, even in a request with 5,000 of them', async () => {
    const many = Array.from({ length: 5000 }, (_, at) => `p${at}=${at}`).join('&')
    const reply = await newClient().send('POST', '/oidc/oauth/token', many, form)
    expect([reply.status, reply.json['error']]).toEqual([400, 'invalid_client'])
  })
})

test('temporary failures are not reported as OAuth errors, because clients would then log in again', async () => {
  const { username } = await newPerson()
  const oidc = newClient()
  const code = await oidc.codeOf(await oidc.passed(username, password))
  controller.cluster.hasLeader = false
  try {
    const reply = await oidc.redeem(code)
    expect(reply.status).toBe(503)
    expect(typeof reply.json['error']).toBe('object')
    expect(reply.headers['retry-after']).toBe('1')
  } finally {
    controller.cluster.hasLeader = true
  }
  expect((await oidc.redeem(code)).status).toBe(200)
})
