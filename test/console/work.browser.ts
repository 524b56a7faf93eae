import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Download, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { pageTexts } from '../../src/console/page-texts.ts'
import { texts } from '../../src/console/texts.ts'
import { issueLeaf, validityStartingAt } from '../../src/pki/authority/authority.ts'
import { until } from '../process/support/client.ts'
import { certifiedKey, dataOf, Enrolling, newRequest } from '../process/support/enrolling.ts'
import { newCa } from '../support/authorities.ts'
import { axeFindings, browserMissing } from './support/console-browser.ts'
import {
  type ConsoleNetwork,
  consoleNetwork,
  management,
  shots,
} from './support/console-network.ts'

// Goal: an operator does everyday jobs in the console: finds out why somebody cannot reach a
// service and corrects it, works with lists, and sees and changes single records.

const formula = '=HYPERLINK("https://evil.example","x")'

const network = consoleNetwork(async (made: ConsoleNetwork) => {
  const make = made.create.bind(made)
  const wiki = await make('services', {
    name: 'wiki',
    encryptionRequired: true,
    roleAttributes: ['docs'],
  })
  for (let k = 1; k <= 12; k += 1) {
    const name = `laptop-${String(k).padStart(2, '0')}`
    const roleAttributes = k <= 4 ? ['engineering', 'laptops'] : ['laptops']
    await make('identities', { name, type: 'Device', isAdmin: false, roleAttributes })
  }
  await make('identities', {
    name: formula,
    type: 'User',
    isAdmin: false,
    roleAttributes: ['engineering', 'laptops'],
  })
  await make('service-policies', {
    name: 'wiki for engineering laptops',
    type: 'Dial',
    semantic: 'AllOf',
    identityRoles: ['#engineering', '#laptops'],
    serviceRoles: [`@${wiki}`],
  })
})

type SavedFile = Readonly<{ text: string; file: Download }>

/** Chooses an entry in the export menu of a list. */
async function exported(page: Page, name: string): Promise<SavedFile> {
  await page.getByRole('button', { name: texts.list.exports, exact: true }).click()
  return await downloaded(page, name)
}

/**
 * Makes a list longer for the exports of a page: each request for `pageRows` rows gets the
 * controller's first answer, with copies of its first row and with another total. In the browser,
 * because an export makes hundreds of requests.
 * @returns a function that ends this.
 */
async function lengthen(
  page: Page,
  list: { readonly path: string; readonly pageRows: number; readonly totalCount: number },
): Promise<() => Promise<void>> {
  const { path, pageRows, totalCount } = list
  await page.evaluate(`{
    globalThis.originalFetch = fetch
    let first = null
    globalThis.fetch = async (input, init) => {
      const { pathname, searchParams } = new URL(input)
      const isExport = pathname === '${management}${path}' && searchParams.get('limit') === '${pageRows}'
      if (!isExport) return await originalFetch(input, init)
      first ??= await originalFetch(input, init)
      const { data: [row], meta } = await first.clone().json()
      // Without most of its members, so that the answers are small.
      const { id, name, identity, service, dial, bind } = row
      const offset = Number(searchParams.get('offset'))
      const data = Array(Math.min(${pageRows}, ${totalCount} - offset)).fill({ id, name, identity, service, dial, bind })
      meta.pagination = { ...meta.pagination, offset, totalCount: ${totalCount} }
      return new Response(JSON.stringify({ data, meta }), { headers: first.headers })
    }
  }`)
  return async () => await page.evaluate('globalThis.fetch = originalFetch; undefined')
}

async function downloaded(page: Page, name: string): Promise<SavedFile> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name }).click(),
  ])
  return { file, text: readFileSync(await file.path(), 'utf8') }
}

describe.skipIf(browserMissing !== null)('The access page of the console', () => {
  test('lists by name the identities that have access to a service, with their number', async () => {
    const { id } = await network.recordOf('services', 'wiki')
    const page = await network.open(1, `access?service=${id}`)
    await page.getByRole('heading', { name: texts.access.reaching(5, true) }).waitFor()
    await page.getByRole('columnheader', { name: texts.access.grantedBy }).waitFor()
    await page.getByRole('row').filter({ hasText: 'laptop-01' }).locator('a').nth(1).waitFor()
    const names = page.locator('tbody th')
    expect(await names.allTextContents()).toEqual([
      formula,
      'laptop-01',
      'laptop-02',
      'laptop-03',
      'laptop-04',
    ])
    await page.getByLabel(texts.list.filter('Identities')).fill('laptop-03')
    await page.getByRole('heading', { name: texts.access.reaching(1, true) }).waitFor()
    await page.getByRole('button', { name: texts.access.shows.all, exact: true }).click()
    await page.getByLabel(texts.list.filter('Identities')).fill('laptop')
    await page.getByRole('heading', { name: texts.access.reaching(12, false) }).waitFor()
  })

  test('exports its list without a cell that a spreadsheet would run as a formula', async () => {
    const { id } = await network.recordOf('services', 'wiki')
    const page = await network.open(1, `access?service=${id}`)
    await page.getByRole('heading', { name: texts.access.reaching(5, true) }).waitFor()
    const { text, file } = await downloaded(page, texts.access.export)
    expect(file.suggestedFilename()).toBe('access.csv')
    const [head, first, ...rest] = text.trimEnd().split('\r\n')
    expect(head).toContain('"Use the service (Dial)"')
    expect(first).toContain(`"'=HYPERLINK(""https://evil.example"",""x"")"`)
    expect(rest).toHaveLength(4)
  })

  test('says that an export ends at 20,000 of the pairs', async () => {
    const { id } = await network.recordOf('services', 'wiki')
    const page = await network.open(1, `access?service=${id}`)
    await page.getByRole('heading', { name: texts.access.reaching(5, true) }).waitFor()
    await lengthen(page, { path: '/access/explain', pageRows: 100, totalCount: 20_001 })
    const { text } = await downloaded(page, texts.access.export)
    expect(text.trimEnd().split('\r\n')).toHaveLength(1 + 20_000)
    const limit = pageTexts.listFile.limit(20_000, '20,001 identities')
    await page.getByRole('status').filter({ hasText: limit }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await page.screenshot({ path: join(shots, 'access-export-limit.png') })
  })

  test('shows the nearest policy and the missing role attribute, and adds the attribute after showing the effect', async () => {
    const service = await network.recordOf('services', 'wiki')
    const identity = await network.recordOf('identities', 'laptop-07')
    const page = await network.open(1, `access?identity=${identity.id}&service=${service.id}`)
    await page.getByText(texts.access.lacks('laptop-07', ['engineering'])).waitFor()
    await page.getByRole('link', { name: 'wiki for engineering laptops' }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    const cost = texts.access.cost.identities(1)
    await page
      .getByRole('button', { name: `${texts.access.fix('laptop-07', ['engineering'])} (${cost})` })
      .click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('+ laptop-07 may use wiki').waitFor()
    const title = texts.access.fixTitle(texts.access.fix('laptop-07', ['engineering']))
    expect(await dialog.getByRole('heading', { name: title }).count()).toBe(1)
    expect(await dialog.locator('.diff .is').innerText()).toContain('#engineering')
    await dialog.getByRole('button', { name: texts.access.fixVerb, exact: true }).click()
    await page.getByText('1 policy grants it').waitFor()
    const { roleAttributes } = await network.recordOf('identities', 'laptop-07')
    expect(roleAttributes).toEqual(['engineering', 'laptops'])
    await network.send('PATCH', `identities/${identity.id}`, { roleAttributes: ['laptops'] })
  })
})

describe.skipIf(browserMissing !== null)('A list in the console', () => {
  test('can be filtered by facets and by a click on a role attribute, and keeps both in its URL', async () => {
    const page = await network.open(1, 'identities')
    await page.getByLabel('Type', { exact: true }).selectOption('user')
    await page.getByText(texts.list.total(1, true), { exact: true }).waitFor()
    await page.getByRole('link', { name: formula }).waitFor()
    await page.getByLabel('Type', { exact: true }).selectOption('device')
    await page.getByLabel('State', { exact: true }).selectOption('offline')
    await page.getByText(texts.list.total(12, true), { exact: true }).waitFor()
    await page.getByRole('button', { name: '#engineering' }).first().click()
    await page.getByText(texts.list.total(4, true), { exact: true }).waitFor()
    expect(new URL(page.url()).search).toBe('?q=%23engineering&is-type=device&is-state=offline')
    await page.reload()
    await page.getByText(texts.list.total(4, true), { exact: true }).waitFor()
    expect(await axeFindings(page)).toEqual([])
  })

  test('can be filtered to show disabled identities', async () => {
    const { id } = await network.recordOf('identities', 'laptop-12')
    await network.send('POST', `identities/${id}/disable`, { durationMinutes: 0 })
    const page = await network.open(1, 'identities?is-state=disabled')
    await page.getByText(texts.list.total(1, true), { exact: true }).waitFor()
    await page.locator('tbody').getByText(texts.cell.disabled).waitFor()
    await network.send('POST', `identities/${id}/enable`)
  })

  test('shows names of records in roles and configs instead of their IDs', async () => {
    const { id: configTypeId } = await network.recordOf('config-types', 'host.v1')
    const data = { protocol: 'tcp', address: '127.0.0.1', port: 80 }
    const config = await network.create('configs', { name: 'git host', configTypeId, data })
    await network.create('services', { name: 'git', encryptionRequired: true, configs: [config] })
    const page = await network.open(1, 'service-policies')
    await page.locator('tbody').getByText('@wiki').waitFor()
    await page.goto(network.url(1, 'services'))
    await page.getByText(texts.list.chooseColumns, { exact: true }).click()
    await page.getByLabel('Configs', { exact: true }).check()
    await page.locator('tbody').getByText('git host').waitFor()
  })

  test('exports its filtered rows as CSV and JSON, with escaped formulas and without tokens', async () => {
    const enrolling = { name: 'enrolling', type: 'User', isAdmin: false, enrollment: { ott: true } }
    await network.create('identities', enrolling)
    const page = await network.open(1, 'identities?is-type=user')
    await page.getByText(texts.list.total(2, true), { exact: true }).waitFor()
    const csv = await exported(page, texts.list.exportAs.csv)
    expect(csv.file.suggestedFilename()).toBe('identities.csv')
    expect(csv.text).toContain(`"'=HYPERLINK(""https://evil.example"",""x"")"`)
    const json = await exported(page, texts.list.exportAs.json)
    const rows = JSON.parse(json.text) as readonly { readonly name: string }[]
    expect(rows.map(({ name }) => name)).toEqual([formula, 'enrolling'])
    expect(json.text).not.toMatch(/"(jwt|token)"|eyJ/)
    expect(csv.text).not.toContain('eyJ')
  })

  test('says that an export ends at 100,000 of its rows, until the next export has all rows', async () => {
    const page = await network.open(1, 'identities?q=laptop-0')
    await page.getByText(texts.list.total(9, true), { exact: true }).waitFor()
    const list = { path: '/identities', pageRows: 500, totalCount: 120_000 }
    const shorten = await lengthen(page, list)
    const { text } = await exported(page, texts.list.exportAs.csv)
    expect(text.trimEnd().split('\r\n')).toHaveLength(1 + 100_000)
    const limit = page.getByText(pageTexts.listFile.limit(100_000, '120,000 identities'))
    await page.getByRole('status').filter({ has: limit }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await page.screenshot({ path: join(shots, 'list-export-limit.png') })
    await shorten()
    const whole = await exported(page, texts.list.exportAs.json)
    expect(JSON.parse(whole.text)).toHaveLength(9)
    await limit.waitFor({ state: 'detached' })
  })

  test('changes the role attributes of selected records after showing the effect', async () => {
    const page = await network.open(1, 'identities?q=laptop-0')
    for (const name of ['laptop-08', 'laptop-09']) {
      await page.getByLabel(texts.list.select(name)).check()
    }
    await page.getByText(texts.list.selected(2)).waitFor()
    const bar = page.getByRole('region', { name: texts.list.selected(2) })
    await bar.getByRole('combobox').fill('engineering')
    await page.getByRole('option', { name: '#engineering' }).click()
    expect(await axeFindings(page)).toEqual([])
    await bar.getByRole('button', { name: texts.list.addAttributes, exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('+ laptop-08 may use wiki').waitFor()
    await dialog.getByText('+ laptop-09 may use wiki').waitFor()
    await dialog.getByRole('button', { name: texts.list.addAttributes, exact: true }).click()
    await dialog.waitFor({ state: 'detached' })
    for (const name of ['laptop-08', 'laptop-09']) {
      const { roleAttributes } = await network.recordOf('identities', name)
      expect(roleAttributes).toEqual(['engineering', 'laptops'])
    }
  })

  test('selects at most as many records as can be changed at once, and shows this number', async () => {
    const recordsMax = 64
    const names = Array.from({ length: recordsMax + 1 }, (_, k) => `sensor-${k}`)
    await Promise.all(
      names.map(
        async (name) => await network.create('services', { name, encryptionRequired: true }),
      ),
    )
    const page = await network.open(1, 'services?q=sensor-')
    await page.setViewportSize({ width: 1280, height: 2000 })
    await page.getByText(texts.list.total(names.length, true)).waitFor()
    await until('more rows are loaded than can be selected', async () => {
      return (await page.locator('tbody th[scope=row]').count()) > recordsMax
    })
    await page.getByLabel(texts.list.selectAll).check()
    const bar = page.getByRole('region', { name: texts.list.selected(recordsMax) })
    await bar.getByText(texts.list.ofMany(names.length, recordsMax)).waitFor()
    const head = page.getByLabel(texts.list.selectAll)
    expect(await head.evaluate((box: { indeterminate?: boolean }) => box.indeterminate)).toBe(true)
    const button = bar.getByRole('button', { name: texts.record.delete })
    expect(await button.getAttribute('aria-disabled')).toBe('false')
    await page.getByLabel(texts.list.selectAll).uncheck()
    await bar.waitFor({ state: 'detached' })
    const rows = await network.rowsOf('services', 'name contains "sensor-" limit 100')
    await Promise.all(
      rows.map(async ({ id }) => await network.send('DELETE', `services/${String(id)}`)),
    )
  })

  test('keeps the head of its table in sight while it is scrolled', async () => {
    const page = await network.open(1, 'identities')
    await page.setViewportSize({ width: 1280, height: 400 })
    await page.locator('.table-wrap.fits tbody th[scope=row]').first().waitFor()
    await page.evaluate('scrollTo(0, 300)')
    const head = page.locator('thead th').first()
    await until('the page is scrolled', async () => (await page.evaluate('scrollY')) === 300)
    expect((await head.boundingBox())?.y).toBe(0)
  })

  test('names a selected record that cannot be deleted, and disables the deletion of the selection', async () => {
    const page = await network.open(1, 'identities')
    for (const name of ['Default Admin', 'laptop-01']) {
      await page.getByLabel(texts.list.select(name)).check()
    }
    const bar = page.getByRole('region', { name: texts.list.selected(2) })
    await bar.getByRole('button', { name: texts.record.delete }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(pageTexts.bulk.notDeleted('Default Admin')).waitFor()
    const button = dialog.getByRole('button', { name: texts.record.delete })
    expect(await button.getAttribute('aria-disabled')).toBe('true')
  })

  test('shows which of the selected records could not be changed', async () => {
    for (const name of ['short-lived 1', 'short-lived 2']) {
      await network.create('services', { name, encryptionRequired: true })
    }
    const page = await network.open(1, 'services?q=short-lived')
    await page.getByLabel(texts.list.selectAll).check()
    await page.getByText(texts.list.selected(2)).waitFor()
    await page
      .getByRole('region', { name: texts.list.selected(2) })
      .getByRole('button', { name: texts.record.delete })
      .click()
    await page.getByText(texts.preview.none).waitFor()
    const { id } = await network.recordOf('services', 'short-lived 1')
    await network.send('DELETE', `services/${id}`)
    const dialog = page.getByRole('dialog')
    const phrase = pageTexts.bulk.phrase('2 services')
    const clip = "getComputedStyle(document.querySelector('dialog .field .label')).clipPath"
    expect(await page.evaluate(clip)).toBe('none')
    await dialog.getByLabel(texts.manage.typeThis(phrase)).fill(phrase)
    await dialog.getByRole('button', { name: texts.record.delete }).click()
    await dialog.getByText(pageTexts.bulk.refused(1, 2)).waitFor()
    expect(await network.rowsOf('services', 'name contains "short-lived"')).toEqual([])
  })
})

describe.skipIf(browserMissing !== null)('In the console, the page of a record', () => {
  test('shows the state of an identity, the services that the identity reaches, its sessions, and its form', async () => {
    const { id } = await network.recordOf('identities', 'laptop-01')
    const page = await network.open(1, `identities/${id}`)
    const heading = page.getByRole('heading', { level: 1, name: 'laptop-01' })
    await heading.getByText(texts.cell.notEnrolled).waitFor()
    await page.getByRole('button', { name: id }).waitFor()
    await page.getByRole('link', { name: '#engineering' }).waitFor()
    const tab = (name: keyof typeof texts.record.tabNames) =>
      page
        .getByRole('navigation', { name: texts.record.tabs })
        .getByRole('link', { name: texts.record.tabNames[name] })
        .click()
    await tab('access')
    await page.getByRole('heading', { name: texts.access.reached(1, true) }).waitFor()
    await page.getByRole('link', { name: 'wiki', exact: true }).waitFor()
    await tab('sessions')
    await page.getByText(texts.live.none['api-sessions']).waitFor()
    await page.getByText(texts.live.none.sessions).waitFor()
    await tab('edit')
    expect(await page.getByLabel('Name').inputValue()).toBe('laptop-01')
  })

  test('sets the password of an identity, and ends its sessions', async () => {
    const body = { name: 'ada', type: 'User', isAdmin: false, permissions: ['service.read'] }
    const id = await network.create('identities', body)
    const page = await network.open(1, `identities/${id}`)
    const password = 'a long enough password'
    const more = page.getByRole('button', { name: texts.acts.more, exact: true })
    await more.click()
    await page.getByRole('button', { name: texts.acts.setPassword }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(texts.logIn.username).fill('lovelace')
    await dialog.getByLabel(texts.logIn.password).fill(password)
    await dialog.getByRole('button', { name: texts.acts.setPassword }).click()
    await dialog.waitFor({ state: 'detached' })
    const hers = await network.open(1, '', { username: 'lovelace', password })
    await page.reload()
    await more.click()
    await page.getByRole('button', { name: texts.acts.logOutAll }).click()
    await dialog.getByRole('button', { name: texts.acts.logOutAll }).click()
    await dialog.waitFor({ state: 'detached' })
    await until('no session is left', async () => {
      return (await network.rowsOf('api-sessions', `identity = "${id}"`)).length === 0
    })
    await hers.close()
  })

  test('creates a new token for a router that has not enrolled, and offers to show the token', async () => {
    const id = await network.create('edge-routers', { name: 'gate' })
    const [before] = await network.rowsOf('enrollments', `edgeRouter = "${id}"`)
    const page = await network.open(1, `edge-routers/${id}`)
    await page.getByRole('button', { name: texts.acts.invite }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: texts.acts.invite }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: texts.acts.showToken }).waitFor()
    const [after] = await network.rowsOf('enrollments', `edgeRouter = "${id}"`)
    expect(after?.['token']).not.toBe(before?.['token'])
  })

  test('offers a new token in place of a token that has expired, and lists the token as expired', async () => {
    const identityId = await network.create('identities', {
      name: 'late',
      type: 'User',
      isAdmin: false,
    })
    const endMs = Date.now() + 8000
    const expiresAt = new Date(endMs).toISOString()
    await network.create('enrollments', { method: 'ott', identityId, expiresAt })
    await until('the token has expired', () => Promise.resolve(Date.now() > endMs))
    const page = await network.open(1, 'enrollments?is-expiry=all')
    const row = page.getByRole('row').filter({ hasText: 'late' })
    await row.locator('.badge.plain', { hasText: texts.home.words.expired }).waitFor()
    await page.goto(network.url(1, `identities/${identityId}`))
    await page.getByText(texts.acts.tokenExpired).waitFor()
    expect(await page.getByRole('button', { name: texts.acts.showToken }).count()).toBe(0)
    await page.locator('.button.primary', { hasText: texts.acts.invite }).click()
    await page.getByRole('dialog').getByRole('button', { name: texts.acts.invite }).click()
    await page.getByRole('button', { name: texts.acts.showToken }).waitFor()
    await page.getByText(texts.acts.tokenEnds).waitFor()
  })

  test('re-enrolls an identity: its certificate is refused, and its new token enrolls the same identity', async () => {
    const enrolling = await Enrolling.on(network.cluster)
    const { identityId, token } = await enrolling.outstanding(1, { ott: true })
    const enroll = async (by: string) => {
      const request = await newRequest()
      return certifiedKey(request, dataOf(await enrolling.ott(1, by, request))['cert'])
    }
    const before = await enroll(token)
    expect((await enrolling.logIn(1, before)).status).toBe(200)
    const page = await network.open(1, `identities/${identityId}`)
    await page.getByRole('button', { name: texts.acts.more, exact: true }).click()
    await page.getByRole('button', { name: texts.acts.reEnroll }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: texts.acts.reEnroll }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: texts.acts.showToken }).waitFor()
    expect((await enrolling.logIn(1, before)).status).toBe(401)
    const [enrollment] = await network.rowsOf('enrollments', `identity = "${identityId}"`)
    const after = await enroll(String(enrollment?.['token']))
    const session = dataOf(await enrolling.logIn(1, after))
    expect(session['identityId']).toBe(identityId)
    await page.reload()
    await page.getByRole('heading', { level: 1 }).getByText(texts.cell.loggedIn).waitFor()
    expect(await page.getByRole('button', { name: texts.acts.showToken }).count()).toBe(0)
  })

  test('issues a token for an identity that has none', async () => {
    const id = await network.create('identities', { name: 'grace', type: 'User', isAdmin: false })
    const page = await network.open(1, `identities/${id}`)
    await page.getByRole('button', { name: texts.acts.invite }).click()
    await page.getByRole('dialog').getByRole('button', { name: texts.acts.invite }).click()
    await page.getByRole('button', { name: texts.acts.showToken }).waitFor()
    await page.getByRole('button', { name: texts.acts.refresh }).waitFor()
  })
})

describe.skipIf(browserMissing !== null)('Time-limited access in the console', () => {
  const HOUR_MS = 60 * 60_000
  const WEEK_MS = 7 * 24 * HOUR_MS

  async function pick(page: Page, label: string, typed: string): Promise<void> {
    await page.getByLabel(label, { exact: true }).fill(typed)
    await page.getByRole('option', { name: typed }).first().click()
  }

  test('gives the role #contractors one service for a week, after showing the effect', async () => {
    const books = { name: 'books', encryptionRequired: true, roleAttributes: [] }
    await network.create('services', books)
    const contractor = { type: 'User', isAdmin: false, roleAttributes: ['contractors'] }
    await network.create('identities', { name: 'carla', ...contractor })
    const page = await network.open(1, 'service-policies/new')
    await page.getByLabel('Name *').fill('books for contractors')
    await page.getByLabel('Match *').selectOption('AnyOf')
    await pick(page, 'Identity roles', '#contractors')
    await pick(page, 'Service roles', '@books')
    await page.getByRole('button', { name: texts.ends.presets.week, exact: true }).click()
    await page.getByText('Ends in 7 days').waitFor()
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('+ carla may use books').waitFor()
    expect(await axeFindings(page)).toEqual([])
    await dialog.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.getByRole('heading', { name: 'books for contractors' }).waitFor()
    await page.getByRole('heading').getByText('Ends in').waitFor()

    const { id, expiresAt } = await network.recordOf('service-policies', 'books for contractors')
    const leftMs = Date.parse(String(expiresAt)) - Date.now()
    expect(leftMs).toBeGreaterThan(WEEK_MS - HOUR_MS)
    expect(leftMs).toBeLessThanOrEqual(WEEK_MS + 60_000)
    await page.goto(network.url(1, 'service-policies?is-ends=coming'))
    await page.getByText(texts.list.total(1, true), { exact: true }).waitFor()
    await page.locator('tbody').getByText('in 7 days').waitFor()
    expect(await axeFindings(page)).toEqual([])

    const soon = { expiresAt: new Date(Date.now() + 6000).toISOString() }
    await network.send('PATCH', `service-policies/${id}`, soon)
    await until('the policy has ended', async () => {
      const row = await network.recordOf('service-policies', 'books for contractors')
      return row['isEnded'] === true
    })
    await page.goto(network.url(1, 'service-policies?is-ends=ended'))
    await page.locator('tbody').getByText(texts.ends.passed('')).waitFor()
    await page.goto(network.url(1, `service-policies/${id}`))
    await page.getByRole('heading').getByText(texts.ends.passed('')).waitFor()
    const carla = await network.recordOf('identities', 'carla')
    const service = await network.recordOf('services', 'books')
    await page.goto(network.url(1, `access?identity=${carla.id}&service=${service.id}`))
    await page.getByText('The Dial policy that includes both has ended').waitFor()
  })

  test('lets a role attribute of an identity expire, and restores it', async () => {
    const person = { type: 'User', isAdmin: false, roleAttributes: ['staff', 'visitors'] }
    const id = await network.create('identities', { name: 'dora', ...person })
    const page = await network.open(1, `identities/${id}?tab=edit`)
    const set = texts.ends.about('#visitors', texts.ends.set)
    await page.getByRole('button', { name: set }).click()
    await page.getByRole('button', { name: '#visitors: 1 week' }).click()
    await page.getByRole('button', { name: texts.form.save, exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: texts.form.save }).click()
    await until('the end is stored', async () => {
      const row = await network.recordOf('identities', 'dora')
      return Object.keys(row['roleAttributesExpireAt'] ?? {}).join() === 'visitors'
    })
    await page.goto(network.url(1, 'identities?is-ends=some'))
    await page.locator('tbody').getByText('#visitors ends in').waitFor()
    const soon = { visitors: new Date(Date.now() + 6000).toISOString() }
    await network.send('PATCH', `identities/${id}`, { roleAttributesExpireAt: soon })
    await until('the attribute has ended', async () => {
      const { roleAttributes } = await network.recordOf('identities', 'dora')
      return String(roleAttributes) === 'staff'
    })
    await page.goto(network.url(1, `identities/${id}`))
    await page.getByText('#visitors ended').waitFor()
    await page.goto(network.url(1, `identities/${id}?tab=edit`))
    await page.getByRole('button', { name: '#visitors: 1 day' }).click()
    await page.getByRole('button', { name: texts.form.save, exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: texts.form.save }).click()
    await until('the attribute is back', async () => {
      const { roleAttributes } = await network.recordOf('identities', 'dora')
      return String(roleAttributes) === 'staff,visitors'
    })
    expect(await axeFindings(page)).toEqual([])
  })
})

describe.skipIf(browserMissing !== null)('The columns of a list in the console', () => {
  test('can be selected by the user, are stored in the browser, and determine the export', async () => {
    const page = await network.open(1, 'identities?q=laptop-01')
    const header = (name: string) => page.getByRole('columnheader', { name, exact: true })
    await header('Client').waitFor()
    await page.getByText(texts.list.chooseColumns, { exact: true }).first().click()
    const choice = page.getByRole('group', { name: texts.list.chooseColumns })
    await choice.getByLabel('Client', { exact: true }).uncheck()
    await choice.getByLabel('External ID', { exact: true }).check()
    expect(await choice.getByLabel(/token|JWT/i).count()).toBe(0)
    expect(await axeFindings(page)).toEqual([])
    await page.keyboard.press('Escape')
    await header('Client').waitFor({ state: 'detached' })
    await page.reload()
    await header('External ID').waitFor()
    expect(await header('Client').count()).toBe(0)
    const { text } = await exported(page, texts.list.exportAs.csv)
    expect(text.split('\r\n')[0]).toContain('"externalId"')
    await page.getByText(texts.list.chooseColumns, { exact: true }).first().click()
    await page.getByRole('button', { name: texts.list.usualColumns }).click()
    await header('Client').waitFor()
  })
})

describe.skipIf(browserMissing !== null)('In the console, the page of a record', () => {
  test('overrides the config of a service for an identity, and removes the override', async () => {
    const { serviceConfigs } = texts
    const { id: configTypeId } = await network.recordOf('config-types', 'host.v1')
    const data = { protocol: 'tcp', address: '127.0.0.1', port: 81 }
    await network.create('configs', { name: 'host of one laptop', configTypeId, data })
    const { id } = await network.recordOf('identities', 'laptop-02')
    const page = await network.open(1, `identities/${id}`)
    await page.getByText(serviceConfigs.title, { exact: true }).click()
    for (const [label, name] of [
      [serviceConfigs.service, 'wiki'],
      [serviceConfigs.config, 'host of one laptop'],
    ] as const) {
      await page.getByLabel(label, { exact: true }).fill(name)
      await page.getByRole('option', { name }).first().click()
    }
    await page.getByRole('button', { name: serviceConfigs.add }).click()
    const remove = page.getByRole('button', {
      name: serviceConfigs.removeOf('host of one laptop', 'wiki'),
    })
    await remove.waitFor()
    expect(await axeFindings(page)).toEqual([])
    expect(await network.rowsOf(`identities/${id}/service-configs`, 'true')).toHaveLength(1)
    await remove.click()
    await remove.waitFor({ state: 'detached' })
    expect(await network.rowsOf(`identities/${id}/service-configs`, 'true')).toEqual([])
  })

  test('verifies a CA with a certificate for its verification token', async () => {
    const ca = await newCa('a CA of the company', Date.now())
    const id = await network.create('cas', {
      name: 'company',
      certPem: ca.certificatePem,
      isAutoCaEnrollmentEnabled: true,
      isOttCaEnrollmentEnabled: true,
      isAuthEnabled: true,
      identityRoles: [],
    })
    const { verificationToken } = await network.recordOf('cas', 'company')
    const proof = await issueLeaf({
      issuer: ca,
      commonName: String(verificationToken),
      uris: [],
      hosts: [],
      usages: ['client'],
      validity: validityStartingAt(Date.now(), 86_400_000),
    })
    const page = await network.open(1, `cas/${id}`)
    await page.getByRole('button', { name: texts.acts.verifyCa }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(String(verificationToken)).waitFor()
    await dialog.getByLabel(texts.acts.verifyCaText).fill(ca.certificatePem)
    await dialog.getByRole('button', { name: texts.acts.verifyCa }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel(texts.acts.verifyCaText).fill(proof.certificatePem)
    await dialog.getByRole('button', { name: texts.acts.verifyCa }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: texts.acts.verifyCa }).waitFor({ state: 'detached' })
    expect((await network.recordOf('cas', 'company'))['isVerified']).toBe(true)
  })
})
