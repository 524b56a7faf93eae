import { beforeAll, expect, test } from 'vitest'

import { newShortId } from '../../src/lib/random.ts'
import { management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { appOfPage, policyOfCodes } from './support/mfa.ts'
import { claimsOf, made } from './support/network.ts'
import { OidcClient, type OidcReply } from './support/oidc.ts'
import { raiseLevel } from './support/raise-level.ts'

const { controller, root } = await controllerForFile()
const password = 'a long enough password'
let authPolicyId = ''

beforeAll(async () => {
  await raiseLevel(controller)
  authPolicyId = await policyOfCodes(root)
})

/**
 * The hidden fields of the form on a page, which a browser sends in addition to the person's input.
 */
function hiddenOf({ text }: OidcReply): Record<string, string> {
  const found = text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)
  return Object.fromEntries(Array.from(found, ([, name = '', value = '']) => [name, value]))
}

function actionOf({ text }: OidcReply): string {
  return /<form method="post" action="([^"]+)">/.exec(text)?.[1] ?? ''
}

/**
 * A browser that has sent the password of a person who must use a TOTP code and has no
 * authenticator app.
 */
async function atOffer() {
  const username = `name-${newShortId()}`
  const rest = { name: username, type: 'User', isAdmin: false, authPolicyId }
  const identityId = await made(root, `${management}/identities`, rest)
  const credential = { method: 'updb', identityId, username, password }
  await made(root, `${management}/authenticators`, credential)
  const oidc = new OidcClient(controller)
  const browser = {
    accept: 'text/html,*/*;q=0.8',
    'sec-fetch-site': 'same-origin',
    'sec-fetch-mode': 'navigate',
  }
  const logIn = async (): Promise<OidcReply> => {
    const form = { id: await oidc.begin(), username, password }
    return await oidc.send('POST', '/oidc/login/password', form, browser)
  }
  const submit = (page: OidcReply, typed: Readonly<Record<string, string>> = {}) =>
    oidc.send('POST', actionOf(page), { ...hiddenOf(page), ...typed }, browser)
  return { oidc, logIn, submit, offer: await logIn() }
}

test('a user without an authenticator app sets up an app on the log-in page, and the log-in continues', async () => {
  const { oidc, offer, submit, logIn } = await atOffer()
  expect([offer.status, offer.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  expect(offer.text).toContain('none is set up for you yet')
  const page = await submit(offer)
  expect([page.status, page.headers['cache-control']]).toEqual([201, 'no-store'])
  expect(page.headers['content-security-policy']).toContain("img-src data:; form-action 'self'")
  expect(page.text).not.toMatch(/<script|style=|https?:|otpauth:/)
  const [, image = ''] = /src="data:image\/png;base64,([^"]+)"/.exec(page.text) ?? []
  expect(Buffer.from(image, 'base64').subarray(1, 4).toString()).toBe('PNG')
  const app = appOfPage(controller, page)
  expect(app.recoveryCodes).toHaveLength(20)
  const step = await submit(page, { code: app.code() })
  expect(step.status, step.text).toBe(302)
  expect(String(step.headers['location'])).toContain('/authorize/callback')
  const { json: tokens } = await oidc.redeem(await oidc.codeOf(step))
  expect(claimsOf(tokens['access_token'])).toMatchObject({ amr: ['password', 'totp'] })
  const again = await logIn()
  expect(again.text).toContain('Enter the code that your authenticator app shows')
  let last = await submit(again, { code: app.wrongCode() })
  expect([last.status, last.text]).toEqual([400, expect.stringContaining('code is not right')])
  while (last.status === 400) last = await submit(last, { code: app.wrongCode() })
  expect(last.text).toContain('Too many wrong codes were given.')
  controller.clock.advance(31_000)
  expect((await submit(last, { code: app.recoveryCodes[0] ?? '' })).status).toBe(302)
})

test('the log-in page shows the same key and recovery codes again after a wrong code, until there were too many wrong codes', async () => {
  const { offer, submit } = await atOffer()
  const page = await submit(offer)
  const app = appOfPage(controller, page)
  const wrong = await submit(page, { code: app.wrongCode() })
  expect([wrong.status, wrong.headers['content-type']]).toEqual([400, 'text/html; charset=utf-8'])
  expect(wrong.text).toContain('That code is not right.')
  const shown = appOfPage(controller, wrong)
  expect([shown.url, shown.recoveryCodes]).toEqual([app.url, app.recoveryCodes])
  let last = wrong
  while (last.status === 400) last = await submit(last, { code: app.wrongCode() })
  expect(last.status).toBe(429)
  expect(last.text).toContain('Too many wrong codes were given.')
  controller.clock.advance(31_000)
  expect((await submit(last, { code: app.code() })).status).toBe(302)
})

test('an enrollment page offers to start again if the user has begun another TOTP enrollment in another window', async () => {
  const { offer, submit } = await atOffer()
  const first = await submit(offer)
  const second = await submit(offer)
  const late = await submit(first, { code: appOfPage(controller, first).code() })
  expect(late.text).toContain('That app was replaced or removed by another log-in.')
  const third = await submit(late)
  expect(appOfPage(controller, third).url).not.toBe(appOfPage(controller, second).url)
  expect((await submit(third, { code: appOfPage(controller, third).code() })).status).toBe(302)
})

test('an enrollment page that was opened before the user verified TOTP asks for a code of the verified app', async () => {
  const { offer, submit } = await atOffer()
  const page = await submit(offer)
  const app = appOfPage(controller, page)
  expect((await submit(page, { code: app.code() })).status).toBe(302)
  for (const [old, status] of [
    [offer, 409],
    [page, 404],
  ] as const) {
    const late = await submit(old, { code: app.freshCode() })
    expect(late.status).toBe(status)
    expect(late.text).toContain('An app is set up already. Enter its code.')
    expect((await submit(late, { code: app.freshCode() })).status).toBe(302)
  }
})
