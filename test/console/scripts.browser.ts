import { afterAll, describe, expect, test } from 'vitest'

import { permissivePrimaryRules } from '../../src/entities/parts/auth-policy-factors.ts'
import { pageTexts } from '../../src/console/page-texts.ts'
import { texts } from '../../src/console/texts.ts'
import { ecKey, jwkOf, KeyServer, TestProvider } from '../support/identity-provider.ts'
import { browserMissing } from './support/console-browser.ts'
import { type ConsoleNetwork, consoleNetwork } from './support/console-network.ts'

// Goal: a script that somebody stored in any field that the console shows stays a text on every
// page. A script that runs would change `pwned`; one that the content security policy blocks is
// reported by the browser.

const attack = '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=2</script>'
const idp = await KeyServer.open([])
const key = ecKey('of-the-provider')
idp.keys = [jwkOf(key)]
afterAll(() => idp.close())

/** IDs of the records, by collection. */
const ids: Record<string, string> = {}

async function makeRecords({ create, send }: Pick<ConsoleNetwork, 'create' | 'send'>) {
  const make = async (collection: string, body: object): Promise<string> => {
    ids[collection] = await create(collection, {
      name: attack,
      tags: { [attack]: attack },
      ...body,
    })
    return ids[collection]
  }
  const schema = {
    title: attack,
    description: attack,
    type: 'object',
    required: [attack],
    properties: {
      [attack]: { type: 'string', title: attack, description: attack, enum: [attack] },
    },
  }
  const configTypeId = await make('config-types', { schema })
  const config = await make('configs', { configTypeId, data: { [attack]: attack } })
  const roleAttributes = [attack]
  const service = { encryptionRequired: true, configs: [config], roleAttributes }
  const serviceId = await make('services', service)
  const appData = { [attack]: attack }
  const identity = { type: 'User', isAdmin: false, roleAttributes, appData, externalId: attack }
  const identityId = await make('identities', { ...identity, enrollment: { ott: true } })
  await make('edge-routers', { roleAttributes, appData })
  await make('service-policies', {
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`#${attack}`],
    serviceRoles: [`#${attack}`],
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
  })
  await make('posture-checks', { typeId: 'DOMAIN', domains: [attack], roleAttributes })
  const secondary = { requireTotp: false, requireExtJwtSigner: null }
  await make('auth-policies', { primary: permissivePrimaryRules, secondary })
  await make('external-jwt-signers', {
    issuer: 'https://idp.test',
    audience: 'overlay',
    enabled: true,
    jwksEndpoint: idp.url,
    clientId: attack,
    claimsProperty: '/sub',
    useExternalId: true,
    externalAuthUrl: 'https://idp.test',
    scopes: [attack],
  })
  await create('authenticators', {
    method: 'updb',
    identityId,
    username: attack,
    password: 'a long enough password',
  })
  // The change history contains the values before and after a change.
  await send('PATCH', `services/${serviceId}`, { roleAttributes: [attack, 'second'] })
}

const network = consoleNetwork(
  (made) => makeRecords({ create: made.create.bind(made), send: made.send.bind(made) }),
  () => Promise.resolve({ FLOTILLA_API_RESERVED_SIGNER_HOSTS: 'true' }),
)

describe.skipIf(browserMissing !== null)(
  'A script in stored text is shown as text in the console and does not run',
  () => {
    test('on the lists and pages of nine kinds of records, with their tabs', async () => {
      const page = await network.open(1)
      for (const [collection, id] of Object.entries(ids)) {
        for (const path of [collection, `${collection}/${id}`, `${collection}/${id}?tab=edit`]) {
          await page.goto(network.url(1, path))
          await page.locator('h1').waitFor()
          await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' })
          await page.getByText('globalThis.pwned').first().waitFor({ state: 'attached' })
          expect(await page.evaluate('globalThis.pwned'), path).toBeUndefined()
        }
        for (const tab of ['access', 'sessions', 'activity', 'traffic']) {
          await page.goto(network.url(1, `${collection}/${id}?tab=${tab}`))
          await page.locator('h1').waitFor()
          await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' })
        }
        expect(await page.evaluate('globalThis.pwned'), collection).toBeUndefined()
      }
      expect(Object.keys(ids).length).toBeGreaterThan(8)
    })

    test('on the Home page, and on the pages that show several records', async () => {
      const page = await network.open(1)
      const pair = `identity=${ids['identities']}&service=${ids['services']}`
      for (const path of [
        '',
        `access?${pair}`,
        `access?service=${ids['services']}`,
        'topology',
        'live',
        'activity?kind=service',
        `attributes/${encodeURIComponent(attack)}`,
        `identities?q=${encodeURIComponent(`#${attack}`)}`,
      ]) {
        await page.goto(network.url(1, path))
        await page.locator('h1').waitFor()
        await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' })
        if (path.startsWith('activity')) {
          await page.locator('.expand').first().click()
          await page.locator('.was, .is').first().waitFor()
        }
        expect(await page.evaluate('globalThis.pwned'), path).toBeUndefined()
      }
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog').getByRole('combobox').fill('pwned')
      await page.getByRole('option', { name: 'globalThis.pwned' }).first().waitFor()
      expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
    })

    test('in the name of a provider at the log-in, and in the claims of a tested token', async () => {
      const page = await network.browser.page()
      await page.goto(network.url(1))
      await page.getByRole('button', { name: texts.logIn.byProvider(attack) }).waitFor()
      expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
      await network.logIn(page, `external-jwt-signers/${ids['external-jwt-signers']}`)
      const tokens = new TestProvider('https://idp.test', 'overlay', Date.now, key)
      const token = await tokens.token(attack, { claims: { [attack]: attack, aud: attack } })
      await page.getByLabel(pageTexts.tokenTest.token, { exact: true }).fill(token)
      await page.getByRole('button', { name: pageTexts.tokenTest.run, exact: true }).click()
      await page.getByRole('rowheader', { name: /^Audience/ }).waitFor()
      expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
    })

    test('in an imported file', async () => {
      const page = await network.open(1, 'wizards/import')
      const text = JSON.stringify({
        version: 1,
        services: [{ name: `${attack} 2`, encryptionRequired: true, [attack]: attack }],
      })
      const file = { name: `${attack}.json`, mimeType: 'text/plain', buffer: Buffer.from(text) }
      await page.getByLabel(pageTexts.import.file, { exact: true }).setInputFiles(file)
      await page.getByText('globalThis.pwned').first().waitFor()
      expect(await page.evaluate('globalThis.pwned')).toBeUndefined()
    })
  },
)
