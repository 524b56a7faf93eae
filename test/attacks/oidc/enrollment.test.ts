import { expect, test } from 'vitest'

import { newShortId } from '../../../src/lib/random.ts'
import { management } from '../../api/support/caller.ts'
import { appOfPage, policyOfCodes } from '../../api/support/mfa.ts'
import { made } from '../../api/support/network.ts'
import { type OidcClient, type OidcReply } from '../../api/support/oidc.ts'
import { password, twoControllers } from './support.ts'

// The attack: somebody who knows a password, or finds an unattended browser, reads the key of
// another person's authenticator app from the page that sets it up, or sets up another app.

const { root, controller, second, newClient, newClientOf } = await twoControllers()
const authPolicyId = await policyOfCodes(root)
const enroll = '/oidc/login/totp/enroll'
const browser = {
  accept: 'text/html',
  'sec-fetch-site': 'same-origin',
  'sec-fetch-mode': 'navigate',
}

async function newPersonWithoutApp(): Promise<{ identityId: string; username: string }> {
  const username = `person ${newShortId()}`
  const body = { name: username, type: 'User', isAdmin: false, authPolicyId }
  const identityId = await made(root, `${management}/identities`, body)
  const credential = { method: 'updb', identityId, username, password }
  await made(root, `${management}/authenticators`, credential)
  return { identityId, username }
}

async function logIn(oidc: OidcClient, username: string): Promise<string> {
  const id = await oidc.begin()
  const offer = await oidc.send('POST', '/oidc/login/password', { id, username, password }, browser)
  expect(offer.status, offer.text).toBe(200)
  return id
}

function enrollmentIn({ text }: OidcReply): string {
  return /name="enrollment" value="([^"]+)"/.exec(text)?.[1] ?? ''
}

test('a wrong code makes the page show the authenticator key again only to a caller that saw the key before', async () => {
  const { username } = await newPersonWithoutApp()
  const oidc = newClient()
  const id = await logIn(oidc, username)
  const page = await oidc.send('POST', enroll, { id }, browser)
  const app = appOfPage(controller, page)
  const thief = newClient()
  const stolen = { id: await logIn(thief, username), code: app.wrongCode() }
  for (const form of [stolen, { ...stolen, enrollment: '' }, { ...stolen, enrollment: 'x' }]) {
    const wrong = await thief.send('POST', `${enroll}/verify`, form, browser)
    expect(wrong.status).toBe(400)
    expect(wrong.text).not.toContain('class="key"')
    expect(wrong.text).not.toContain(app.recoveryCodes[0])
  }
  // Any controller shows the key to the person.
  const form = { id, code: app.wrongCode(), enrollment: enrollmentIn(page) }
  const own = await newClientOf(second).send('POST', `${enroll}/verify`, form, browser)
  expect(appOfPage(controller, own).url).toBe(app.url)
})

test('no page shows the authenticator key again once it was verified', async () => {
  const { username } = await newPersonWithoutApp()
  const oidc = newClient()
  const id = await logIn(oidc, username)
  const page = await oidc.send('POST', enroll, { id }, browser)
  const app = appOfPage(controller, page)
  const form = { id, code: app.code(), enrollment: enrollmentIn(page) }
  expect((await oidc.send('POST', `${enroll}/verify`, form, browser)).status).toBe(302)
  const late = await oidc.send('POST', `${enroll}/verify`, form, browser)
  const begun = await oidc.send('POST', enroll, form, browser)
  expect([late.status, begun.status]).toEqual([404, 409])
  for (const { text } of [late, begun]) {
    expect(text).toContain('Enter its code')
    expect(text).not.toContain('class="key"')
    expect(text).not.toContain(app.recoveryCodes[0])
  }
})

test.each(['', '/verify'])(
  'a form on a foreign page cannot set up an authenticator app at the path enroll%s',
  async (step) => {
    const { identityId, username } = await newPersonWithoutApp()
    const oidc = newClient()
    const id = await logIn(oidc, username)
    const isEnrolled = (): unknown =>
      controller.machine
        .findAll('mfa', 'identityId', identityId)
        .map(({ isVerified }) => isVerified)
    let form: Record<string, string> = { id }
    if (step === '/verify') {
      const page = await oidc.send('POST', enroll, form, browser)
      const app = appOfPage(controller, page)
      form = { ...form, code: app.code(), enrollment: enrollmentIn(page) }
    }
    const before = isEnrolled()
    for (const site of ['cross-site', 'same-site', 'none']) {
      const foreign = { ...browser, 'sec-fetch-site': site }
      const refused = await oidc.send('POST', enroll + step, form, foreign)
      expect([site, refused.status]).toEqual([site, 401])
      expect(refused.text).not.toContain('class="key"')
      expect(isEnrolled()).toEqual(before)
    }
    // The same form of the own page has an effect.
    await oidc.send('POST', enroll + step, form, browser)
    expect(isEnrolled()).toEqual([step === '/verify'])
  },
)
