import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Provider } from 'oidc-provider'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { refusalReasons } from '../../src/lib/refusal-reason.ts'
import { pageTexts } from '../../src/console/page-texts.ts'
import { texts } from '../../src/console/texts.ts'
import { ecKey, KeyServer, TestProvider } from '../support/identity-provider.ts'
import { axeFindings, browserMissing, logIn } from './support/console-browser.ts'
import { consoleNetwork, shots } from './support/console-network.ts'
import { Operator } from './support/operator.ts'

// Goal: an administrator sets up an identity provider from values that people know, and sees for a
// token which check decides and which identity it logs in. The provider is a real one.

const folder = await mkdtemp(join(tmpdir(), 'flotilla-console-provider-'))
const idp = await KeyServer.open([])
const issuer = `https://localhost:${idp.port}`
const key = ecKey('of-the-provider')
const tokens = new TestProvider(issuer, 'overlay', Date.now, key)
afterAll(async () => {
  await idp.close()
  await rm(folder, { recursive: true })
})

const network = consoleNetwork(
  async (made) => {
    const ada = { name: 'ada', type: 'User', isAdmin: true, externalId: 'ada@localhost' }
    await made.create('identities', ada)
  },
  async () => {
    const ca = join(folder, 'ca.pem')
    writeFileSync(ca, idp.caPem)
    return { FLOTILLA_API_RESERVED_SIGNER_HOSTS: 'true', FLOTILLA_API_SIGNER_CA: ca }
  },
)

beforeAll(() => {
  if (browserMissing !== null) return
  const jwk = {
    ...key.privateKey.export({ format: 'jwk' }),
    kid: key.kid,
    alg: 'ES256',
    use: 'sig',
  }
  const oidc = new Provider(issuer, {
    jwks: { keys: [jwk] },
    cookies: { keys: ['a key for cookies'] },
    clients: [
      {
        client_id: 'overlay',
        token_endpoint_auth_method: 'none',
        redirect_uris: [1, 2, 3].map((k) => network.url(k)),
        id_token_signed_response_alg: 'ES256',
      },
    ],
  })
  const callback = oidc.callback()
  idp.answer = (request, response) => void callback(request, response)
})

async function lookUp(page: Page, at: string): Promise<void> {
  await page.getByLabel(texts.signers.provider, { exact: true }).selectOption('other')
  await page.getByLabel('Issuer *').fill(at)
  await page.getByLabel('Client ID *').fill('overlay')
  await page.getByRole('button', { name: texts.signers.lookUp }).click()
}

async function testToken(page: Page, token: string): Promise<void> {
  await page.getByLabel(pageTexts.tokenTest.token, { exact: true }).fill(token)
  await page.getByRole('button', { name: pageTexts.tokenTest.run, exact: true }).click()
}

/** Texts of the cells in the row of a check. */
async function rowOf(page: Page, title: string): Promise<readonly string[]> {
  const head = page.getByRole('rowheader', { name: new RegExp(`^${title}`) })
  const row = page.getByRole('row').filter({ has: head })
  return (await row.locator('th, td').allTextContents()).map((text) => text.trim())
}

describe.skipIf(browserMissing !== null)('The console’s wizard for a signer', () => {
  // An earlier console took 6 clicks and 172 keys, and could not test a token.
  test('leads an administrator from the Home page to a tested token in few clicks', async () => {
    const page = await network.open(1)
    await page.getByRole('heading', { level: 1, name: texts.pages.home }).waitFor()
    const operator = new Operator(page)
    await operator.press('Control+k')
    await page.getByRole('dialog').getByRole('combobox').waitFor()
    await operator.type('log-in')
    await page.getByRole('option', { name: texts.wizards.titles.signer }).waitFor()
    await operator.press('Enter')
    // Entra ID needs the same number of values: a tenant instead of the issuer.
    await operator.select(page.getByLabel(texts.signers.provider, { exact: true }), 'other')
    await operator.fill(page.getByLabel('Issuer *'), issuer)
    await operator.press('Tab')
    await operator.type('overlay')
    await operator.press('Enter')
    await page.getByText(texts.signers.keys(1)).waitFor()
    await operator.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Another OpenID provider' }).waitFor()
    const token = await tokens.token('ada@localhost')
    const field = page.getByLabel(pageTexts.tokenTest.token, { exact: true })
    await operator.click(field)
    await operator.paste(field, token)
    await operator.click(page.getByRole('button', { name: pageTexts.tokenTest.run, exact: true }))
    await page.getByText(pageTexts.tokenTest.logsIn).waitFor()
    await page.getByRole('link', { name: 'ada', exact: true }).waitFor()
    expect(operator.effort.clicks).toBeLessThanOrEqual(5)
    expect(operator.effort.keys).toBeLessThanOrEqual(60)
    const { id } = await network.recordOf('external-jwt-signers', 'Another OpenID provider')
    await network.send('DELETE', `external-jwt-signers/${id}`)
  })

  test('creates a signer from the issuer and the client, and tests tokens with it', async () => {
    const page = await network.open(1, 'external-jwt-signers')
    await page.locator('.empty').getByRole('link', { name: texts.wizards.titles.signer }).click()
    await page.getByRole('heading', { name: texts.wizards.titles.signer }).waitFor()
    await lookUp(page, issuer)
    await page.getByText(texts.signers.keys(1)).waitFor()
    await page.getByText(`${issuer}/jwks`).waitFor()
    await page.getByLabel('Name', { exact: true }).fill('')
    await page.getByLabel('Name', { exact: true }).fill('staff')
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('button', { name: texts.signers.create }).click()
    await page.getByRole('heading', { name: 'staff' }).waitFor()
    expect(await network.recordOf('external-jwt-signers', 'staff')).toMatchObject({
      issuer,
      audience: 'overlay',
      jwksEndpoint: `${issuer}/jwks`,
      claimsProperty: '/sub',
      useExternalId: true,
      clientId: 'overlay',
      externalAuthUrl: issuer,
    })
    await testToken(page, await tokens.token('ada@localhost'))
    await page.getByText(pageTexts.tokenTest.logsIn).waitFor()
    await page.getByRole('link', { name: 'ada', exact: true }).waitFor()
    const passed = pageTexts.tokenTest.states['passed']
    expect(await rowOf(page, 'Audience')).toEqual(['Audience aud', passed, 'overlay', 'overlay'])
    expect(await axeFindings(page)).toEqual([])
    await page.screenshot({ path: join(shots, 'token-test.png'), fullPage: true })

    await testToken(page, await tokens.token('ada@localhost', { claims: { aud: 'other' } }))
    await page.getByText(pageTexts.tokenTest.refused(refusalReasons.TOKEN_AUDIENCE)).waitFor()
    const failed = pageTexts.tokenTest.states['failed']
    expect(await rowOf(page, 'Audience')).toEqual(['Audience aud', failed, 'other', 'overlay'])
    await testToken(page, await tokens.token('nobody@localhost'))
    await page.getByText(/no identity has the ID or external ID/).waitFor()
    expect((await rowOf(page, 'Identity')).slice(1, 3)).toEqual([failed, 'nobody@localhost'])
  })

  test('does not put a tested token into the URL or the storage of the browser', async () => {
    const { id } = await network.recordOf('external-jwt-signers', 'staff')
    const page = await network.open(1, `external-jwt-signers/${id}`)
    const token = await tokens.token('ada@localhost')
    const requested: string[] = []
    page.on('request', (request) => requested.push(request.url()))
    await testToken(page, token)
    await page.getByText(pageTexts.tokenTest.logsIn).waitFor()
    const stored = await page.evaluate<string>(
      'JSON.stringify([{ ...sessionStorage }, { ...localStorage }, location.href])',
    )
    const signature = token.split('.').at(-1) ?? ''
    expect(stored + requested.join()).not.toContain(signature)
    expect(requested.some((one) => one.endsWith('/jwt-signer-setup/test'))).toBe(true)
  })

  test('shows why a provider cannot be used, and keeps the typed values', async () => {
    const page = await network.open(1, 'wizards/signer')
    await page.getByLabel(texts.signers.provider, { exact: true }).selectOption('entra')
    await page.getByLabel('Directory (tenant) ID *').fill('common')
    await page.getByLabel('Client ID *').fill('overlay')
    await page.getByRole('button', { name: texts.signers.lookUp }).click()
    await page.getByText(texts.signers.incomplete).waitFor()
    await lookUp(page, `${issuer}/elsewhere`)
    await page.getByText(/cannot be used: response status 404/).waitFor()
    await lookUp(page, 'https://169.254.169.254')
    await page.getByText(/an address that is not allowed/).waitFor()
    await page.reload()
    expect(await page.getByLabel('Issuer *').inputValue()).toBe('https://169.254.169.254')
    const link = page.getByRole('link', { name: texts.signers.byHand }).last()
    await link.click()
    await page.getByRole('heading', { name: 'Create external JWT signer' }).waitFor()
  })

  test('is available only to administrators, as is the test of a token', async () => {
    const identityId = await network.create('identities', {
      name: 'bobby',
      type: 'User',
      isAdmin: false,
      permissions: ['external-jwt-signer', 'identity.read'],
    })
    const account = { username: 'bobby', password: 'a long enough password' }
    await network.create('authenticators', { method: 'updb', identityId, ...account })
    const page = await network.browser.page()
    await logIn(page, network.url(1), account)
    const { id } = await network.recordOf('external-jwt-signers', 'staff')
    await page.goto(network.url(1, `external-jwt-signers/${id}`))
    const button = page.getByRole('button', { name: pageTexts.tokenTest.run, exact: true })
    expect(await button.getAttribute('title')).toBe(texts.failure.notAllowed)
    await page.goto(network.url(1, 'wizards/signer'))
    await page.getByText(texts.failure.notAllowed).waitFor()
  })
})

describe.skipIf(browserMissing !== null)('The console’s log-in at an identity provider', () => {
  test('opens the page of the provider, and logs in the identity that belongs to the account', async () => {
    const page = await network.browser.page()
    await page.goto(network.url(2, 'services'))
    await page.getByRole('button', { name: texts.logIn.byProvider('staff') }).click()
    await page.waitForURL((url) => url.origin === issuer)
    await page.locator('input[name="login"]').fill('ada@localhost')
    await page.locator('input[name="password"]').fill('any')
    await page.getByRole('button', { name: 'Sign-in' }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Services', exact: true, level: 1 }).waitFor()
    expect(page.url()).toBe(network.url(2, 'services'))
    const client = await network.cluster.loggedIn(1)
    const { id } = await network.recordOf('identities', 'ada')
    const filter = encodeURIComponent(`identity = "${id}"`)
    const sessions = await client.request(
      'GET',
      `/edge/management/v1/api-sessions?filter=${filter}`,
    )
    expect((sessions.body.data as readonly unknown[]).length).toBe(1)
  })

  test('shows an error if the account has no identity, and still offers the other ways to log in', async () => {
    const page = await network.browser.page()
    await page.goto(network.url(1))
    await page.getByRole('button', { name: texts.logIn.byProvider('staff') }).click()
    await page.locator('input[name="login"]').fill('mallory@localhost')
    await page.locator('input[name="password"]').fill('any')
    await page.getByRole('button', { name: 'Sign-in' }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText(texts.logIn.providerRefused).waitFor()
    expect(new URL(page.url()).search).toBe('')
    await page.getByLabel(texts.logIn.username).waitFor()
    expect(await axeFindings(page)).toEqual([])
  })
})
