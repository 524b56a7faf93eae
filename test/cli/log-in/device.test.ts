import { afterAll, beforeAll, expect, test } from 'vitest'

import {
  type DeviceLogIn,
  OidcProviderClient,
} from '../../../src/cli/client/oidc-provider-client.ts'
import { logInByDevice } from '../../../src/cli/log-in/device.ts'
import { admin } from '../../api/support/controller.ts'
import { Administrator } from '../client/support.ts'

// Goal: a person in another place logs in a terminal without a browser, and the log-in continues
// when a controller fails.

let person: Administrator
let provider: OidcProviderClient
beforeAll(async () => {
  person = await Administrator.open()
  provider = await OidcProviderClient.discover(person.origin, { caPem: person.caPem })
})
afterAll(() => person.close())

/** Advances the clock of the controller by the time for which the terminal would wait. */
const pause = (ms: number): Promise<void> => {
  person.cluster.controller.clock.advance(ms)
  return Promise.resolve()
}
const nowhere = (): Promise<OidcProviderClient> =>
  Promise.reject(new Error('there is no other controller'))

async function send(path: string, form: Record<string, string>) {
  const headers = {
    host: new URL(person.origin).host,
    accept: 'text/html',
    'content-type': 'application/x-www-form-urlencoded',
  }
  const body = new URLSearchParams(form).toString()
  return await person.cluster.listener.call({ path, body, headers })
}

/** Enters the code and logs in as a person does in a browser on another device. */
async function allow({ userCode }: DeviceLogIn): Promise<void> {
  const page = await send('/oidc/device', { user_code: userCode })
  const [, id = ''] = /authRequestID=([^"&]+)"/.exec(page.text) ?? []
  const step = await send('/oidc/login/password', { id: decodeURIComponent(id), ...admin })
  const { pathname, search } = new URL(String(step.headers['location']))
  const headers = { host: new URL(person.origin).host }
  await person.cluster.listener.call({ method: 'GET', path: pathname + search, headers })
}

test('a device log-in waits until the user approves it, and then receives the tokens', async () => {
  let shown: DeviceLogIn | null = null
  let asked = 0
  const show = (begun: DeviceLogIn): void => void (shown = begun)
  const tokens = await logInByDevice(provider, nowhere, show, async (ms) => {
    asked += 1
    if (asked === 3 && shown !== null) await allow(shown)
    await pause(ms)
  })
  expect(tokens).toMatchObject({ name: 'Default Admin', accessToken: expect.stringMatching(/^ey/) })
  expect(shown).toMatchObject({ verificationUri: `${person.origin}/oidc/device` })
  expect(asked).toBe(3)
})

test('a device log-in that the user denies or ignores fails with one sentence', async () => {
  const deny = (begun: DeviceLogIn): void =>
    void send('/oidc/device/deny', { user_code: begun.userCode })
  await expect(logInByDevice(provider, nowhere, deny, pause)).rejects.toThrow('denied')
  await expect(logInByDevice(provider, nowhere, () => undefined, pause)).rejects.toThrow(
    'nobody allowed the log-in in time',
  )
})

test('a device log-in tries another controller when the first one is unreachable', async () => {
  const { cluster } = person
  const away = await OidcProviderClient.discover(person.origin, { caPem: person.caPem })
  let isAway = false
  const poll = away.pollDevice.bind(away)
  const { HttpsFault } = await import('../../../src/cli/client/https-request.ts')
  away.pollDevice = (begun) =>
    isAway ? Promise.reject(new HttpsFault('closed the connection', true)) : poll(begun)
  let shown: DeviceLogIn | null = null
  const show = (begun: DeviceLogIn): void => void (shown = begun)
  const next = () => OidcProviderClient.discover(cluster.origin, { caPem: person.caPem })
  const tokens = await logInByDevice(away, next, show, async (ms) => {
    isAway = true
    await pause(ms)
    if (shown !== null) await allow(shown)
    shown = null
  })
  expect(tokens.accessToken).toMatch(/^ey/)
})
