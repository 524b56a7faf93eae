import { describe, expect, test } from 'vitest'

import { deviceLogInLimits } from '../../src/auth/oidc/device-log-ins.ts'
import { newShortId } from '../../src/lib/random.ts'
import { CallerOf, client, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { turnOnMfa } from './support/mfa.ts'
import { claimsOf, made } from './support/network.ts'
import { OidcClient, type OidcReply } from './support/oidc.ts'
import { raiseLevel } from './support/raise-level.ts'

// Goal: a person logs in a device without a browser by entering its code in another browser, on
// pages without scripts; no other person can do this (RFC 8628).

const { controller, root } = await controllerForFile()
await raiseLevel(controller)
const password = 'a long enough password'
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

async function person(): Promise<string> {
  const name = `name-${newShortId()}`
  const identityId = await made(root, `${management}/identities`, {
    name,
    type: 'User',
    isAdmin: false,
  })
  await made(root, `${management}/authenticators`, {
    method: 'updb',
    identityId,
    username: name,
    password,
  })
  return name
}

/** A device that starts a log-in and polls for its result. */
class Device {
  readonly oidc = new OidcClient(controller)
  #code = ''
  userCode = ''

  async begin(): Promise<OidcReply> {
    const form = { client_id: 'native', scope: 'openid offline_access' }
    const begun = await this.oidc.send('POST', '/oidc/device_authorization', form)
    this.#code = String(begun.json['device_code'])
    this.userCode = String(begun.json['user_code'])
    return begun
  }

  /** Polls at the interval that the device received. */
  ask(changes: Readonly<Record<string, string>> = {}): Promise<OidcReply> {
    controller.clock.advance(deviceLogInLimits.devicePollMs)
    return this.askAtOnce(changes)
  }

  askAtOnce(changes: Readonly<Record<string, string>> = {}): Promise<OidcReply> {
    const form = { grant_type: DEVICE_GRANT, client_id: 'native', device_code: this.#code }
    return this.oidc.send('POST', '/oidc/oauth/token', { ...form, ...changes })
  }
}

async function begunDevice(): Promise<Device> {
  const device = new Device()
  expect((await device.begin()).status).toBe(200)
  return device
}

const browser = new OidcClient(controller)
const html = { accept: 'text/html' }

/** @returns the page that shows the device. */
function enter(typed: string): Promise<OidcReply> {
  controller.clock.advance(5000)
  return browser.send('POST', '/oidc/device', { user_code: typed }, html)
}

/** @returns the ID of the log-in flow to which the page of a device leads. */
function idOn(page: OidcReply): string {
  const [, found = ''] = /authRequestID=([^"&]+)"/.exec(page.text) ?? []
  return decodeURIComponent(found)
}

async function logIn(id: string, username: string): Promise<OidcReply> {
  const form = { id, username, password }
  return await browser.send('POST', '/oidc/login/password', form, html)
}

/** Sends the requests of a browser after the last step of a log-in. */
async function follow({ headers }: OidcReply): Promise<OidcReply> {
  const { pathname, search } = new URL(String(headers['location']))
  return await browser.send('GET', pathname + search, undefined, html)
}

describe('a device in the OAuth device flow', () => {
  test('gets its codes from the endpoint that discovery announces, and waits for the user’s approval', async () => {
    const device = new Device()
    const { json } = await device.begin()
    expect(json).toMatchObject({
      user_code: expect.stringMatching(/^[B-Z]{4}-[B-Z]{4}$/),
      verification_uri: 'https://localhost:1280/oidc/device',
      expires_in: 600,
      interval: 5,
    })
    expect(json['verification_uri_complete']).toBe(
      `https://localhost:1280/oidc/device?user_code=${device.userCode}`,
    )
    const { json: found } = await browser.send('GET', '/oidc/.well-known/openid-configuration')
    expect(found['device_authorization_endpoint']).toMatch(/\/oidc\/device_authorization$/)
    expect(found['grant_types_supported']).toContain(DEVICE_GRANT)
    const waiting = await device.ask()
    expect([waiting.status, waiting.json['error']]).toEqual([400, 'authorization_pending'])

    const name = await person()
    const page = await enter(device.userCode.toLowerCase().replace('-', ' '))
    expect([page.status, page.text]).toEqual([200, expect.stringContaining(device.userCode)])
    expect(page.text).not.toContain('<script')
    const id = encodeURIComponent(idOn(page))
    const asked = await browser.send('GET', `/oidc/login/password?authRequestID=${id}`)
    expect(asked.text).toContain('You let a device act as you.')
    const allowed = await follow(await logIn(idOn(page), name))
    expect(String(allowed.headers['location'])).toBe('https://localhost:1280/oidc/device/done')
    expect((await follow(allowed)).text).toContain('Your device is logged in')

    const { status, json: tokens } = await device.ask()
    expect(status).toBe(200)
    expect(claimsOf(tokens['id_token'])).toMatchObject({ name })
    expect(claimsOf(tokens['access_token'])).toMatchObject({ amr: ['password'] })
    const headers = { authorization: `Bearer ${String(tokens['access_token'])}`, host: 'any' }
    const url = `${client}/current-identity`
    expect((await controller.app.inject({ method: 'GET', url, headers })).statusCode).toBe(200)
  })

  test('also waits for the user’s second factor, and gets tokens that are not bound to the key of the user’s browser', async () => {
    const device = await begunDevice()
    const name = await person()
    const caller = new CallerOf(controller)
    await caller.logIn({ username: name, password }, client)
    const { recoveryCodes } = await turnOnMfa(controller, caller)
    const id = idOn(await enter(device.userCode))
    const form = { id, username: name, password, csrPem: 'a request of the browser' }
    const asked = await browser.send('POST', '/oidc/login/password', form, html)
    expect(asked.text).toContain('authenticator app')
    expect((await device.ask()).json['error']).toBe('authorization_pending')
    const [code = ''] = recoveryCodes
    const step = await browser.send('POST', '/oidc/login/totp', { id, code }, html)
    await follow(step)
    const { json } = await device.ask()
    const claims = claimsOf(json['access_token'])
    expect(claims).toMatchObject({ amr: ['password', 'totp'], z_cfs: null })
  })

  test('gets slow_down if it polls too often, and access_denied after the user has refused the log-in', async () => {
    const device = await begunDevice()
    await device.ask()
    await device.askAtOnce()
    expect((await device.askAtOnce()).json['error']).toBe('slow_down')
    const refused = await browser.send('POST', '/oidc/device/deny', { user_code: device.userCode })
    expect(refused.text).toContain('refused')
    expect((await device.ask()).json['error']).toBe('access_denied')
    expect((await enter(device.userCode)).status).toBe(404)
  })

  test('gets its tokens only once; a second request is refused and invalidates the refresh token', async () => {
    const device = await begunDevice()
    await follow(await logIn(idOn(await enter(device.userCode)), await person()))
    const { json } = await device.ask()
    controller.clock.advance(10_000)
    expect((await device.ask()).json['error']).toBe('invalid_grant')
    const refreshed = await device.oidc.refresh(String(json['refresh_token']))
    expect(refreshed.json['error']).toBe('invalid_grant')
  })

  test('gets expired_token if the user does not approve in time, and its code is then invalid', async () => {
    const device = await begunDevice()
    controller.clock.advance(deviceLogInLimits.deviceLogInMs)
    expect((await device.ask()).json['error']).toBe('expired_token')
    expect((await enter(device.userCode)).status).toBe(404)
  })

  test.each([
    [{ client_id: 'openziti' }, 'invalid_grant'],
    [{ device_code: 'made up' }, 'invalid_grant'],
  ])('is refused if its token request contains %j', async (changes, error) => {
    const device = await begunDevice()
    expect((await device.ask(changes)).json['error']).toBe(error)
  })

  test('is found at one controller by a user code that another controller issued', async () => {
    const device = await begunDevice()
    const { waitingDevices } = controller
    const key = device.userCode.replace('-', '')
    const value = waitingDevices.own.get(key)
    waitingDevices.own.delete(key)
    expect((await enter(device.userCode)).status).toBe(404)
    waitingDevices.hear('ctrl2', key, value)
    expect((await enter(device.userCode)).status).toBe(200)
  })
})

test('the page for user codes shows the code from the URL HTML-escaped, under a content security policy that permits nothing by default', async () => {
  const page = await browser.send('GET', '/oidc/device?user_code=%22%3E%3Cscript%3E')
  expect(page.text).toContain('value="&#34;&#62;&#60;script&#62;"')
  expect(page.headers['content-security-policy']).toContain("default-src 'none'")
})
