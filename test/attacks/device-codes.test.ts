import { expect, test } from 'vitest'

import { deviceLogInLimits } from '../../src/auth/oidc/device-log-ins.ts'
import { CallerOf, client, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { turnOnMfa } from '../api/support/mfa.ts'
import { made } from '../api/support/network.ts'
import { parameterOf } from '../api/support/oidc.ts'
import { raiseLevel } from '../api/support/raise-level.ts'

// The attack: anyone on the network requests device codes, guesses the codes of others, requests
// the tokens for them, or uses a code that was visible on a screen.

const { controller, root } = await controllerForFile()
await raiseLevel(controller)
const password = 'a long enough password'
let serial = 0

interface Answer {
  readonly status: number
  readonly text: string
  readonly location: string
  readonly json: Readonly<Record<string, unknown>>
}

async function send(
  url: string,
  form: Readonly<Record<string, string>>,
  remoteAddress = '192.0.2.1',
  method: 'GET' | 'POST' = 'POST',
): Promise<Answer> {
  const answer = await controller.app.inject({
    method,
    url,
    remoteAddress,
    headers: {
      host: 'localhost:1280',
      accept: 'text/html',
      'content-type': 'application/x-www-form-urlencoded',
    },
    ...(method === 'GET' ? {} : { payload: new URLSearchParams(form).toString() }),
  })
  const isJson = String(answer.headers['content-type']).startsWith('application/json')
  const json = (isJson ? JSON.parse(answer.payload) : {}) as Record<string, unknown>
  const location = String(answer.headers['location'])
  return { status: answer.statusCode, text: answer.payload, location, json }
}

interface Begun {
  readonly status: number
  readonly deviceCode: string
  readonly userCode: string
}

async function begin(address?: string): Promise<Begun> {
  const form = { client_id: 'native', scope: 'openid offline_access' }
  const { status, json } = await send('/oidc/device_authorization', form, address)
  return { status, deviceCode: String(json['device_code']), userCode: String(json['user_code']) }
}

const enter = (userCode: string, address?: string): Promise<Answer> =>
  send('/oidc/device', { user_code: userCode }, address)

async function idOf(userCode: string): Promise<string> {
  controller.clock.advance(5000)
  const [, found = ''] = /authRequestID=([^"&]+)"/.exec((await enter(userCode)).text) ?? []
  return decodeURIComponent(found)
}

function ask({ deviceCode }: Begun, clientId = 'native'): Promise<Answer> {
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
  return send('/oidc/oauth/token', { grant_type, client_id: clientId, device_code: deviceCode })
}

async function errorOf(device: Begun, clientId?: string): Promise<unknown> {
  controller.clock.advance(deviceLogInLimits.devicePollMs)
  return (await ask(device, clientId)).json['error']
}

async function person(): Promise<string> {
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

/** @returns the status of the log-in; the session exists after the last redirect was followed. */
async function logIn(id: string, username: string): Promise<number> {
  const step = await send('/oidc/login/password', { id, username, password })
  if (step.status === 302) {
    const { pathname, search } = new URL(step.location)
    await send(pathname + search, {}, undefined, 'GET')
  }
  return step.status
}

test('one source can try only a few user codes per minute, even if it has a valid code', async () => {
  const address = '198.51.100.1'
  const own = await begin(address)
  const statuses: number[] = []
  for (let count = 0; count < deviceLogInLimits.userCodesAtOnceMax; count += 1) {
    statuses.push((await enter(count % 3 === 0 ? own.userCode : 'BCDF-GHJK', address)).status)
  }
  expect(statuses).not.toContain(429)
  const beyond = await enter('BCDF-GHJK', address)
  expect([beyond.status, beyond.text]).toEqual([429, expect.stringContaining('Wait a minute')])
  expect((await enter(own.userCode, '198.51.100.2')).status).toBe(200)
})

test('all sources together can try only a limited number of user codes per minute', async () => {
  controller.clock.advance(60_000)
  let refused = 0
  for (let count = 0; count <= deviceLogInLimits.userCodesOfAllAtOnceMax; count += 1) {
    const address = `10.1.${count >> 8}.${count & 255}`
    if ((await enter('BCDF-GHJK', address)).status === 429) refused += 1
  }
  expect(refused).toBe(1)
  controller.clock.advance(60_000)
})

test('one source cannot use up the limit of pending device log-ins', async () => {
  const address = '203.0.113.1'
  let last = 200
  for (let count = 0; count < deviceLogInLimits.deviceLogInsMax && last === 200; count += 1) {
    last = (await begin(address)).status
  }
  expect(last).toBe(429)
  expect((await begin('203.0.113.2')).status).toBe(200)
  controller.clock.advance(deviceLogInLimits.deviceLogInMs)
  expect((await begin(address)).status).toBe(200)
})

test('a device that polls without a pause gets the error slow_down', async () => {
  const device = await begin()
  await logIn(await idOf(device.userCode), await person())
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask({ ...device })))
  expect(answers.filter(({ json }) => json['error'] === 'slow_down').length).toBeGreaterThan(5)
})

test('a person who sees the user code on a screen cannot log in with it after the device’s owner has done so', async () => {
  const device = await begin()
  const id = await idOf(device.userCode)
  const [owner, thief] = [await person(), await person()]
  expect(await logIn(id, owner)).toBe(302)
  expect(await logIn(id, thief)).toBe(401)
  expect((await enter(device.userCode)).status).toBe(404)
  controller.clock.advance(deviceLogInLimits.devicePollMs)
  const { json } = await ask(device)
  expect(await logIn(id, thief)).toBe(401)
  const headers = { authorization: `Bearer ${String(json['access_token'])}` }
  const url = `${client}/current-identity`
  expect((await controller.app.inject({ method: 'GET', url, headers })).statusCode).toBe(200)
})

test('a device gets no token before the user has passed the second factor', async () => {
  const device = await begin()
  const username = await person()
  const caller = new CallerOf(controller)
  await caller.logIn({ username, password }, client)
  await turnOnMfa(controller, caller)
  expect(await logIn(await idOf(device.userCode), username)).toBe(200)
  expect(await errorOf(device)).toBe('authorization_pending')
})

test('a device code is refused from another client and after the user has denied the log-in; a log-in for a device yields no authorization code', async () => {
  const device = await begin()
  const id = await idOf(device.userCode)
  const username = await person()
  const step = await send('/oidc/login/password', { id, username, password })
  const progress = parameterOf(step.location, 'id')
  const left = await send(
    `/oidc/authorize/callback?id=${encodeURIComponent(progress)}`,
    {},
    undefined,
    'GET',
  )
  expect(left.location).not.toContain('code=')
  expect(await errorOf(device, 'openziti')).toBe('invalid_grant')
  const other = await begin()
  const otherId = await idOf(other.userCode)
  await send('/oidc/device/deny', { user_code: other.userCode })
  await logIn(otherId, username)
  expect(await errorOf(other)).toBe('access_denied')
})

test('a user code in the URL cannot insert markup into the page', async () => {
  const url = '/oidc/device?user_code=%22%3E%3Cform%20action%3D'
  const page = await send(url, {}, undefined, 'GET')
  expect(page.text).not.toContain('"><form action=')
})
