import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

import { texts } from '../../src/console/texts.ts'
import { until } from '../process/support/client.ts'
import { axeFindings, browserMissing, logIn } from './support/console-browser.ts'
import { type ConsoleNetwork, consoleNetwork } from './support/console-network.ts'
import { Operator } from './support/operator.ts'

// Goal: an operator sees at a glance what needs attention in the network, and when identities and
// routers were last seen.

const DAY_MS = 86_400_000
const password = 'reads and never writes'

const network = consoleNetwork(async (made: ConsoleNetwork) => {
  const make = made.create.bind(made)
  for (const name of ['laptop-1', 'laptop-2']) {
    const roleAttributes = ['laptops']
    await make('identities', { name, type: 'Device', isAdmin: false, roleAttributes })
  }
  await make('identities', {
    name: 'invited',
    type: 'User',
    isAdmin: false,
    enrollment: { ott: true },
  })
  await make('services', { name: 'wiki', encryptionRequired: true, roleAttributes: ['docs'] })
  const { id } = await made.recordOf('edge-routers', 'router1')
  await make('edge-router-policies', {
    name: 'laptops by router1',
    semantic: 'AnyOf',
    identityRoles: ['#laptops'],
    edgeRouterRoles: [`@${id}`],
  })
  await make('service-edge-router-policies', {
    name: 'docs by router1',
    semantic: 'AnyOf',
    serviceRoles: ['#docs'],
    edgeRouterRoles: [`@${id}`],
  })
  for (const [name, permissions] of [
    ['reader', ['service.read']],
    ['nobody', []],
  ] as const) {
    const identityId = await make('identities', { name, type: 'User', isAdmin: false, permissions })
    await make('authenticators', { method: 'updb', identityId, username: name, password })
  }
})

describe.skipIf(browserMissing !== null)('The console’s Home page', () => {
  test('lists what needs attention, and each line links to the list of the records that it counts', async () => {
    const page = await network.open(1)
    await page.getByRole('heading', { level: 1, name: texts.pages.home }).waitFor()
    await page.getByRole('heading', { name: texts.cluster.tolerance(1) }).waitFor()
    const { matters } = texts.home
    // The token of the invited identity is valid for hours, and no identity is a week old.
    await page.getByRole('link', { name: matters.unhosted(1) }).waitFor()
    expect(await page.locator('.matters li').count()).toBe(1)
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('link', { name: matters.unhosted(1) }).click()
    await page.getByText(texts.list.total(1, true), { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('?is-hosts=none')
    await page.getByRole('link', { name: 'wiki' }).waitFor()
    // A week later, an identity that was never seen is worth a look.
    await page.clock.setFixedTime(Date.now() + 8 * DAY_MS)
    await page.getByRole('link', { name: texts.pages.home, exact: true }).click()
    await page.getByRole('link', { name: matters.neverSeen(5) }).click()
    await page.getByText(texts.list.total(5, true), { exact: true }).waitFor()
    await network.create('edge-routers', { name: 'gate' })
    await page.goto(network.url(1))
    const routers = page.locator('.amounts a', { hasText: 'Edge routers' })
    await routers.getByText('2 online, 1 not enrolled').waitFor()
  })

  test('shows, if the user may read only services, only services and their history, and no link that would be refused', async () => {
    const page = await network.open(1, '', { username: 'reader', password })
    await page.getByRole('link', { name: texts.home.matters.unhosted(1) }).waitFor()
    expect(await page.locator('.matters li').count()).toBe(1)
    expect(await page.locator('.amounts a').allTextContents()).toEqual([
      `Services1${texts.home.states([{ text: 'With a host', amount: 0 }])}`,
    ])
    expect(await page.locator('nav.nav a').allTextContents()).toEqual([
      'Home',
      'Activity',
      'Services',
    ])
    await page.getByRole('link', { name: texts.pages.activity, exact: true }).click()
    await page.locator('.activity-list').getByRole('link', { name: 'wiki' }).waitFor()
    // The page has one part only, because live events need another permission.
    expect(await page.locator('.segments').count()).toBe(0)
  })

  test('shows an identity without permissions that it has none', async () => {
    const page = await network.open(1, '', { username: 'nobody', password })
    await page.getByText(texts.home.noRights).waitFor()
    expect(await page.locator('nav.nav a').allTextContents()).toEqual(['Home'])
  })
})

describe.skipIf(browserMissing !== null)('The last-seen time in the console', () => {
  test('is a column and a filter in the list of identities', async () => {
    const page = await network.browser.page()
    await logIn(page, network.url(1, 'identities'), network.cluster.admin)
    const row = (name: string) => page.getByRole('row').filter({ hasText: name })
    await row('Default Admin').getByText(texts.time.now).waitFor()
    await row('laptop-1').getByText(texts.time.never).waitFor()
    const facet = page.getByLabel('Last seen', { exact: true })
    await facet.selectOption('never')
    await page.getByText(texts.list.total(3, true), { exact: true }).waitFor()
    await facet.selectOption('30')
    await page.getByText(texts.list.noMatch).waitFor()
    // The operator opens the page again a month later; nobody has used the network in the meantime.
    await page.clock.setFixedTime(Date.now() + 31 * DAY_MS)
    await facet.selectOption('90')
    await page.getByText(texts.list.noMatch).waitFor()
    await facet.selectOption('30')
    await page.getByText(texts.list.total(6, true), { exact: true }).waitFor()
    await row('Default Admin').waitFor()
  })

  test('is shown at the top of an identity’s page', async () => {
    const { id } = await network.recordOf('identities', 'laptop-1')
    const page = await network.open(1, `identities/${id}`)
    await page.locator('.page-lead').getByText(texts.record.neverSeen).waitFor()
  })
})

describe.skipIf(browserMissing !== null)('The console’s page of a router', () => {
  test('shows since when the router is offline, and which services and identities have no other router', async () => {
    const { id } = await network.recordOf('edge-routers', 'router1')
    const page = await network.open(1, `edge-routers/${id}`)
    await page.locator('.page-lead').getByText(texts.record.onlineSince).waitFor()
    await page.getByRole('heading', { name: texts.record.dependents.onlineTitle }).waitFor()
    const fromMs = Date.now()
    process.kill(Number(readFileSync(join(network.cluster.folder, 'router1/pid'), 'utf8')))
    await until('the router is offline', async () => {
      return (await network.recordOf('edge-routers', 'router1'))['isOnline'] === false
    })
    const { offlineSince } = await network.recordOf('edge-routers', 'router1')
    expect(Date.parse(String(offlineSince))).toBeGreaterThanOrEqual(fromMs - 1000)
    await page.goto(network.url(1))
    const operator = new Operator(page)
    await operator.click(page.getByRole('link', { name: texts.home.matters.offlineRouters(1) }))
    await operator.click(page.getByRole('link', { name: 'router1' }))
    await page.locator('.page-lead').getByText(texts.record.offlineSince).waitFor()
    const { dependents } = texts.record
    await page.getByRole('heading', { name: dependents.title }).waitFor()
    // In an earlier console, 5 clicks showed only a third of this information.
    expect(operator.effort).toEqual({ clicks: 2, keys: 0 })
    await page.getByRole('heading', { name: dependents.services(1) }).waitFor()
    await page.getByRole('heading', { name: dependents.identities(2) }).waitFor()
    for (const name of ['wiki', 'laptop-1', 'laptop-2']) {
      const affected = page.getByRole('region', { name: dependents.title })
      await affected.getByRole('link', { name, exact: true }).waitFor()
    }
    expect(await axeFindings(page)).toEqual([])
  })
})
