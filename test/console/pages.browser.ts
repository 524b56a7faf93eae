import { readFileSync } from 'node:fs'
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { pageTexts } from '../../src/console/page-texts.ts'
import { texts } from '../../src/console/texts.ts'
import {
  axeFindings,
  browserMissing,
  fillLogIn,
  logIn,
  overflows,
} from './support/console-browser.ts'
import { newCa } from '../support/authorities.ts'
import { type ConsoleNetwork, consoleNetwork } from './support/console-network.ts'

// Goal: a list first shows the columns that operators need most, also in a narrow window, and an
// empty list shows what to do.

const network = consoleNetwork(async (made: ConsoleNetwork) => {
  const [router] = await made.rowsOf('edge-routers', 'name = "router1"')
  const configs = await Promise.all(
    Object.entries({
      'intercept.v1': {
        protocols: ['tcp'],
        addresses: ['wiki.internal'],
        portRanges: [{ low: 443, high: 443 }],
      },
      'host.v1': { protocol: 'tcp', address: '127.0.0.1', port: 8000 },
    }).map(async ([type, data]) => {
      const { id: configTypeId } = await made.recordOf('config-types', type)
      return await made.create('configs', { name: `hosted ${type}`, configTypeId, data })
    }),
  )
  const service = { name: 'hosted', encryptionRequired: false, configs }
  const hosted = await made.create('services', service)
  await made.create('services', { name: 'unhosted', encryptionRequired: true })
  await made.create('terminators', {
    service: hosted,
    router: String(router?.['id']),
    binding: 'transport',
    address: 'tcp:127.0.0.1:9100',
  })
  for (const [name, type] of [
    ['laptop', 'Device'],
    ['ada', 'User'],
  ]) {
    await made.create('identities', { name, type, isAdmin: false, roleAttributes: ['staff'] })
  }
})

async function narrowPage(path: string) {
  const page = await network.browser.page({ width: 390 })
  await logIn(page, network.url(1), network.cluster.admin)
  await page.goto(network.url(1, path))
  return page
}

describe.skipIf(browserMissing !== null)('A list in the console', () => {
  test('shows which services have a host, and the page of a service offers to let an identity host it', async () => {
    const page = await network.open(1, 'services')
    const rowOf = (name: string) =>
      page.locator('tbody tr').filter({ has: page.getByRole('link', { name, exact: true }) })
    await rowOf('hosted').getByText(texts.cell.hosted(1, 1), { exact: true }).waitFor()
    await rowOf('unhosted').getByText(texts.cell.noHost, { exact: true }).waitFor()
    await rowOf('hosted').getByText('wiki.internal:443').waitFor()
    await rowOf('hosted').getByText('tcp 127.0.0.1:8000').waitFor()
    await rowOf('hosted').getByRole('link').click()
    await page.locator('.facts').getByText('wiki.internal:443').waitFor()
    await page.goto(network.url(1, 'services'))
    await rowOf('unhosted').getByRole('link').click()
    await page.getByRole('heading', { level: 1 }).getByText(texts.cell.noHost).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('link', { name: texts.record.allowHosting }).click()
    await page.getByRole('heading', { name: texts.record.create('service policy') }).waitFor()
    expect(await page.getByLabel('Name *').inputValue()).toBe(texts.record.hosting('unhosted'))
    expect(await page.getByLabel('Right *').inputValue()).toBe('Bind')
    await page.getByRole('button', { name: 'Remove @unhosted' }).waitFor()
  })

  test('without rows shows what to do next, with a link to the task that creates a first row', async () => {
    const page = await network.open(1, 'external-jwt-signers')
    await page.getByText(texts.list.empty['external-jwt-signers'] ?? '').waitFor()
    expect(await axeFindings(page)).toEqual([])
    await page.locator('.empty').getByRole('link', { name: texts.wizards.titles.signer }).click()
    await page.getByRole('heading', { name: texts.wizards.titles.signer }).waitFor()
  })

  test('without rows shows the button that creates a first row, and no filter', async () => {
    const page = await network.open(1, 'cas')
    const create = page.getByRole('button', { name: texts.list.create('certificate authority') })
    await page.locator('.empty').getByRole('button').waitFor()
    expect(await create.count()).toBe(1)
    expect(await page.getByRole('searchbox').count()).toBe(0)
    await create.click()
    await page.waitForURL(/cas\/new$/)
  })

  test('shows a record without a name with the names of the records to which it belongs', async () => {
    const page = await network.open(1, 'terminators')
    await page.getByRole('link', { name: texts.list.terminatorOf('hosted', 'router1') }).waitFor()
    await page.getByRole('columnheader', { name: texts.list.titles.terminators }).waitFor()
  })

  test('shows its active filters, each with a button that removes it', async () => {
    const page = await network.open(1, 'identities?is-ends=some&is-admin=yes')
    const active = page.getByRole('group', { name: texts.list.active })
    await active.getByText('Attribute ends: With an end').waitFor()
    await page.getByText(texts.list.noMatch).waitFor()
    await active.getByRole('button', { name: texts.picker.remove('Administrators: Only') }).click()
    await page.waitForURL(/\?is-ends=some$/)
    await page.getByText(texts.list.noMatch).waitFor()
    await active
      .getByRole('button', { name: texts.picker.remove('Attribute ends: With an end') })
      .click()
    await active.waitFor({ state: 'detached' })
    expect(new URL(page.url()).search).toBe('')
  })

  test('shows the state next to the name, and all filters in a menu, if the window is narrow', async () => {
    const page = await narrowPage('identities')
    await page.getByRole('link', { name: 'laptop' }).waitFor()
    const heads = page.locator('thead th:visible')
    expect(await heads.allInnerTexts()).toEqual(['Name', 'State'])
    // A choice of columns would change nothing that this window shows.
    expect(await page.getByText(texts.list.chooseColumns, { exact: true }).isVisible()).toBe(false)
    expect(await page.getByLabel('Type', { exact: true }).count()).toBe(0)
    const menu = page.getByRole('button', { name: texts.list.filters })
    await menu.click()
    expect(await axeFindings(page)).toEqual([])
    await page.getByLabel('Type', { exact: true }).selectOption('user')
    await page.getByText(texts.list.total(1, true), { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    expect(await menu.getAttribute('aria-expanded')).toBe('false')
    expect(await overflows(page)).toBe(false)
  })
})

describe.skipIf(browserMissing !== null)('The list of controllers in the console', () => {
  test('fits a narrow window with a button for each controller', async () => {
    const page = await narrowPage('cluster')
    const manage = page.getByRole('button', { name: `${texts.cluster.manage} ctrl1` })
    await manage.waitFor()
    expect((await manage.boundingBox())?.width).toBeLessThan(50)
    expect(await axeFindings(page)).toEqual([])
    expect(await overflows(page)).toBe(false)
  })
})

describe.skipIf(browserMissing !== null)('The page of a record in the console', () => {
  test('shows its actions in one menu if the window is narrow', async () => {
    const { id } = await network.recordOf('identities', 'laptop')
    const page = await narrowPage(`identities/${id}`)
    await page.getByRole('button', { name: texts.actions, exact: true }).click()
    await page.getByRole('button', { name: texts.acts.setPassword }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('button', { name: texts.record.delete, exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: texts.cancel }).click()
    await dialog.waitFor({ state: 'detached' })
    // The menu has closed, and the focus is on its button again.
    expect(await page.evaluate('document.activeElement.textContent')).toBe(texts.actions)
  })

  test('marks the added item of a changed list with a plus sign, and no item as removed', async () => {
    const { id } = await network.recordOf('identities', 'ada')
    const page = await network.open(1, `identities/${id}?tab=edit`)
    await page.getByLabel('Role attributes', { exact: true }).fill('web')
    await page.getByRole('option', { name: '#web' }).first().click()
    await page.getByRole('button', { name: texts.form.save, exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.locator('.is', { hasText: 'web' }).waitFor()
    expect(await dialog.locator('.was').count()).toBe(0)
    const sign = "getComputedStyle(document.querySelector('.diff .is'), '::before').content"
    expect(await page.evaluate(sign)).toBe('"+"')
  })
})

describe.skipIf(browserMissing !== null)('The search of the console', () => {
  test('shows only matches of the typed text, and selects none before the controller has answered', async () => {
    const page = await network.open(1)
    await page.keyboard.press('Control+k')
    const dialog = page.getByRole('dialog')
    const options = dialog.getByRole('option')
    await options.first().waitFor()
    let answer = (): void => undefined
    const answered = new Promise<void>((resolve) => (answer = resolve))
    await page.route('**/edge/management/v1/services?*', async (route) => {
      await answered
      await route.continue()
    })
    await dialog.getByRole('combobox').fill('unhost')
    await dialog.getByText(texts.picker.searching).waitFor()
    expect(await options.count()).toBe(0)
    await page.keyboard.press('Enter')
    answer()
    await page.getByRole('heading', { level: 1 }).getByText('unhosted').waitFor()
  })

  test('shows the state of identities and services', async () => {
    const page = await network.open(1)
    await page.keyboard.press('Control+k')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('combobox').fill('unhosted')
    await dialog.getByRole('option').getByText(texts.cell.noHost).waitFor()
    await dialog.getByRole('combobox').fill('laptop')
    await dialog.getByRole('option').getByText(texts.cell.notEnrolled).waitFor()
  })
})

const rowWith = (page: Page, name: string) =>
  page.locator('tbody tr').filter({ has: page.getByRole('link', { name, exact: true }) })

/** The texts of the cells of a row, by the head of their column. */
async function cellsOf(page: Page, name: string): Promise<Readonly<Record<string, string>>> {
  await rowWith(page, name).waitFor()
  const heads = await page.locator('thead th').allInnerTexts()
  const cells = await rowWith(page, name).locator('th, td:not(.select)').allInnerTexts()
  return Object.fromEntries(heads.map((head, at) => [head.trim(), (cells[at] ?? '').trim()]))
}

describe.skipIf(browserMissing !== null)('A list of policies in the console', () => {
  test('shows how many records each policy selects, without a request for each policy', async () => {
    const body = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
    const names = ['staff', 'none', 'all']
    for (const name of names) {
      await network.create('edge-router-policies', {
        ...body,
        name: `routers of ${name}`,
        identityRoles: [`#${name}`],
      })
    }
    // Home counts records as well, so the page must not begin there.
    const page = await network.open(1, 'backups')
    await page.getByRole('heading', { level: 1, name: texts.pages.backups }).waitFor()
    let lists = 0
    let counts = 0
    page.on('request', (request) => {
      if (/management\/v1\/edge-router-policies\?/.test(request.url())) lists += 1
      if (/management\/v1\/(identities|edge-routers)\?/.test(request.url())) counts += 1
    })
    await page.getByRole('link', { name: 'Edge router policies', exact: true }).click()
    expect(await cellsOf(page, 'routers of staff')).toMatchObject({
      Identities: '2',
      'Edge routers': '2',
    })
    expect(await cellsOf(page, 'routers of none')).toMatchObject({ Identities: '0' })
    const all = await network.rowsOf('identities', 'true limit none')
    expect(await cellsOf(page, 'routers of all')).toMatchObject({
      Identities: all.length.toLocaleString('en'),
    })
    // Two for each of the two role fields, whenever the list is read.
    expect(counts).toBeLessThanOrEqual(4 * lists)
    await page.getByRole('link', { name: 'routers of staff' }).click()
    await page.getByText('#staff may connect to all edge routers.').waitFor()
    expect(await axeFindings(page)).toEqual([])
  })

  test('shows the identities of each authentication policy, and which policy is the default', async () => {
    const rules = {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: false, allowedSigners: [] },
      updb: {
        allowed: false,
        lockoutDurationMinutes: 0,
        maxAttempts: 0,
        minPasswordLength: 5,
        requireMixedCase: false,
        requireNumberChar: false,
        requireSpecialChar: false,
      },
    }
    const authPolicyId = await network.create('auth-policies', {
      name: 'Certificates only',
      primary: rules,
      secondary: { requireTotp: false },
    })
    const { id } = await network.recordOf('identities', 'laptop')
    await network.send('PATCH', `identities/${id}`, { authPolicyId })
    const page = await network.open(1, 'auth-policies')
    expect(await cellsOf(page, 'Certificates only')).toMatchObject({ Identities: '1' })
    const { id: defaultId } = await network.recordOf('auth-policies', 'Default')
    // The badge would only repeat this name.
    await rowWith(page, 'Default').waitFor()
    expect(await rowWith(page, 'Default').locator('.badge').count()).toBe(0)
    await network.send('PATCH', `auth-policies/${defaultId}`, { name: 'Everybody' })
    await page.reload()
    await rowWith(page, 'Everybody').getByText(texts.cell.standard).waitFor()
    await network.send('PATCH', `auth-policies/${defaultId}`, { name: 'Default' })
    await page.getByRole('link', { name: 'Certificates only' }).click()
    await page.getByRole('link', { name: 'laptop', exact: true }).waitFor()
  })

  test('omits each column whose value is the same for all policies, and shows this value beside the number of policies', async () => {
    const page = await network.open(1, 'edge-router-policies')
    await page.getByText(`${texts.form.semantic}: ${texts.cell.semantics['AnyOf']}`).waitFor()
    expect(await page.getByRole('columnheader', { name: texts.form.semantic }).count()).toBe(0)
  })

  test('shows below each name what the policy grants, if the window is narrow', async () => {
    const page = await narrowPage('edge-router-policies')
    await page.getByText('#staff may connect to all edge routers.').waitFor()
    expect(await page.locator('thead th:visible').allInnerTexts()).toEqual(['Name'])
    expect(await axeFindings(page)).toEqual([])
    expect(await overflows(page)).toBe(false)
    const count = page.getByRole('status').filter({ hasText: /in all/ })
    expect(await count.innerText()).not.toContain(texts.form.semantic)
    // The count is in one row with the menus, below the filter.
    const boxes = [page.getByRole('searchbox'), count, page.locator('.exports')]
    const [filter, left, right] = await Promise.all(boxes.map((one) => one.boundingBox()))
    expect(left?.y).toBeGreaterThan((filter?.y ?? 0) + (filter?.height ?? 0))
    expect(Math.abs((left?.y ?? 0) - (right?.y ?? 0))).toBeLessThan(12)
  })
})

describe.skipIf(browserMissing !== null)('The list of posture checks in the console', () => {
  test('shows how many policies use each check, and times in hours, and the page of a check links these policies', async () => {
    await network.create('posture-checks', {
      name: 'Fresh code',
      typeId: 'MFA',
      roleAttributes: ['strict'],
      timeoutSeconds: 7200,
    })
    await network.create('service-policies', {
      name: 'Strict',
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [],
      serviceRoles: ['#all'],
      postureCheckRoles: ['#strict'],
    })
    const page = await network.open(1, 'posture-checks')
    expect(await cellsOf(page, 'Fresh code')).toMatchObject({
      Policies: '1',
      Requires: texts.cell.codeEvery(7200),
    })
    expect(texts.cell.codeEvery(7200)).toContain('2 hours')
    await page.getByRole('link', { name: 'Fresh code' }).click()
    const facts = page.getByRole('region', { name: texts.record.facts })
    await facts.getByText(texts.cell.codeEvery(7200)).waitFor()
    await facts.getByRole('link', { name: 'Strict', exact: true }).waitFor()
  })
})

describe.skipIf(browserMissing !== null)('A narrow window of the console', () => {
  test('shows below the name of an authentication policy what the policy allows and requires', async () => {
    const updb = {
      allowed: true,
      lockoutDurationMinutes: 0,
      maxAttempts: 0,
      minPasswordLength: 5,
      requireMixedCase: false,
      requireNumberChar: false,
      requireSpecialChar: false,
    }
    const id = await network.create('auth-policies', {
      name: 'Certificate or password, and always a code of the app',
      primary: {
        cert: { allowed: true, allowExpiredCerts: false },
        extJwt: { allowed: false, allowedSigners: [] },
        updb,
      },
      secondary: { requireTotp: true },
    })
    const page = await narrowPage('auth-policies')
    await page
      .getByText(`Certificate, Password · ${texts.logInRules.secondary}: ${texts.cell.totp}`)
      .waitFor()
    const isCut = `[...document.querySelectorAll('tbody .clip')].some(
      ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth,
    )`
    expect(await page.evaluate(isCut)).toBe(false)
    expect(await overflows(page)).toBe(false)
    await network.send('DELETE', `auth-policies/${id}`)
  })

  test('shows below the name of a terminator its host or its address, and in a second column its state', async () => {
    const { id } = await network.recordOf('identities', 'laptop')
    const page = await narrowPage('terminators')
    await page.getByText('tcp:127.0.0.1:9100').waitFor()
    expect(await page.locator('thead th:visible').allInnerTexts()).toEqual([
      texts.list.titles.terminators,
      'State',
    ])
    await page.locator('tbody').getByText(texts.cell.online).waitFor()
    // No tunneler hosts a service in this network.
    await page.route('**/fabric/v1/terminators?*', async (route) => {
      const response = await route.fetch()
      const body = (await response.json()) as { data: readonly object[] }
      const data = body.data.map((row) => ({ ...row, hostId: id }))
      await route.fulfill({ response, json: { ...body, data } })
    })
    await page.reload()
    await page.getByText(texts.list.hostedBy('laptop')).waitFor()
    expect(await overflows(page)).toBe(false)
  })

  test('does not break the line within the port of a service’s address', async () => {
    const { id: configTypeId } = await network.recordOf('config-types', 'intercept.v1')
    const config = await network.create('configs', {
      name: 'long address',
      configTypeId,
      data: {
        protocols: ['tcp'],
        addresses: ['documentation.intranet.example'],
        portRanges: [{ low: 8443, high: 8443 }],
      },
    })
    const service = { name: 'documentation', encryptionRequired: true, maxIdleTimeMillis: 600_000 }
    const id = await network.create('services', { ...service, configs: [config] })
    const page = await narrowPage(`services/${id}`)
    const facts = page.getByRole('region', { name: texts.record.facts })
    await facts.getByText('documentation.intranet.example:8443').waitFor()
    const lines = "[...document.querySelectorAll('.facts .port')].map((one) => one.offsetHeight)"
    const [height = 0] = await page.evaluate<readonly number[]>(lines)
    expect(height).toBeGreaterThan(0)
    expect(height).toBeLessThan(30)
    expect(await facts.locator('.fact', { hasText: 'Idle time' }).innerText()).toBe(
      'Idle time\n10 minutes',
    )
    await network.send('DELETE', `services/${id}`)
    await network.send('DELETE', `configs/${config}`)
  })

  test('has the port of a new service at the height of its address', async () => {
    const { address, port, hostAddress, hostPort } = texts.wizards.fields
    const page = await narrowPage('wizards/service')
    for (const [host, beside] of [
      [address, port],
      [hostAddress, hostPort],
    ] as const) {
      const [left, right] = await Promise.all(
        [host, beside].map(({ label }) => page.getByLabel(`${label} *`).boundingBox()),
      )
      expect(right?.y).toBe(left?.y)
    }
    expect(await overflows(page)).toBe(false)
  })

  test('centers the buttons of an empty list', async () => {
    const page = await narrowPage('transit-routers')
    const buttons = page.locator('.empty .row .button')
    await expect.poll(() => buttons.count()).toBe(2)
    for (const button of await buttons.all()) {
      const { x = 0, width = 0 } = (await button.boundingBox()) ?? {}
      expect(Math.abs(x + width / 2 - 390 / 2)).toBeLessThan(2)
    }
  })
})

describe.skipIf(browserMissing !== null)('A field for JSON in the console', () => {
  test('is ten lines high for a schema, and grows with its text up to a limit', async () => {
    const page = await network.open(1, 'config-types/new')
    const field = page.getByLabel('Schema')
    const height = async () => (await field.boundingBox())?.height ?? 0
    await field.waitFor()
    const empty = await height()
    expect(empty).toBeGreaterThanOrEqual(160)
    const lines = (count: number) => `{"a": [${'\n0,'.repeat(count)}\n1]}`
    await field.fill(lines(12))
    const filled = await height()
    expect(filled).toBeGreaterThan(empty)
    await field.fill(lines(60))
    expect(await height()).toBeLessThanOrEqual(384)
    expect(await height()).toBeGreaterThan(filled)
  })
})

describe.skipIf(browserMissing !== null)('In the console, the overview', () => {
  test('of a built-in config type shows its use and schema, and offers neither a change nor a deletion', async () => {
    const { id } = await network.recordOf('config-types', 'host.v1')
    const page = await network.open(1, `config-types/${id}`)
    await page.getByRole('heading', { level: 1 }).getByText(texts.cell.builtIn).waitFor()
    await page.getByText(texts.configTypes['host.v1']).waitFor()
    await page.locator('pre', { hasText: 'host.v1.schema.json' }).first().waitFor()
    expect(await page.getByRole('button', { name: texts.record.delete }).count()).toBe(0)
    expect(await page.getByRole('link', { name: texts.record.tabNames.edit }).count()).toBe(0)
    expect(await axeFindings(page)).toEqual([])
  })

  test('of an enrollment links the identity that it is for, and can extend its token', async () => {
    const identityId = await network.create('identities', {
      name: 'newcomer',
      type: 'User',
      isAdmin: false,
      enrollment: { ott: true },
    })
    const page = await network.open(1, 'enrollments')
    await page.getByRole('link', { name: 'newcomer', exact: true }).click()
    const facts = page.getByRole('region', { name: texts.record.facts })
    await facts.getByRole('link', { name: 'newcomer' }).waitFor()
    const refresh = page.getByRole('button', { name: texts.acts.refresh })
    expect(await refresh.getAttribute('aria-disabled')).toBe('false')
    await network.send('DELETE', `identities/${identityId}`)
  })

  test('of a password links its identity', async () => {
    const { id: identityId } = await network.recordOf('identities', 'ada')
    const account = { username: 'lovelace', password: 'a long enough password' }
    await network.create('authenticators', { method: 'updb', identityId, ...account })
    const page = await network.open(1, 'authenticators')
    await page.getByRole('link', { name: 'ada', exact: true }).click()
    const facts = page.getByRole('region', { name: texts.record.facts })
    await facts.getByRole('link', { name: 'ada' }).click()
    await page.waitForURL(`**/identities/${identityId}`)
  })

  test('of a terminator shows next to its name whether its router is online', async () => {
    const page = await network.open(1, 'terminators')
    await page.getByRole('link', { name: texts.list.terminatorOf('hosted', 'router1') }).click()
    await page.getByRole('heading', { level: 1 }).getByText(texts.cell.online).waitFor()
  })

  test('of a CA shows its subject, and next to its name that it is not verified', async () => {
    const ca = await newCa('the company', Date.now())
    const id = await network.create('cas', {
      name: 'company',
      certPem: ca.certificatePem,
      isAutoCaEnrollmentEnabled: true,
      isOttCaEnrollmentEnabled: false,
      isAuthEnabled: true,
      identityRoles: ['managed'],
    })
    const page = await network.open(1, `cas/${id}`)
    await page.getByRole('heading', { level: 1 }).getByText(texts.cell.unverified).waitFor()
    const facts = page.getByRole('region', { name: texts.record.facts })
    await facts.getByText('CN=the company').waitFor()
    await facts.getByRole('link', { name: '#managed' }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await network.send('DELETE', `cas/${id}`)
  })

  test('of a service without traffic says so, and offers to let an identity host the service', async () => {
    const { id } = await network.recordOf('services', 'unhosted')
    const page = await network.open(1, `services/${id}?tab=traffic`)
    await page.getByRole('heading', { name: texts.traffic.none.hour }).waitFor()
    await page.getByRole('link', { name: texts.record.allowHosting }).waitFor()
    expect(await page.locator('figure.chart').count()).toBe(0)
    expect(await axeFindings(page)).toEqual([])
  })
})

describe.skipIf(browserMissing !== null)('The list of transit routers in the console', () => {
  test('leaves out edge routers until the user asks for them, and opens their own pages', async () => {
    const page = await network.open(1, 'transit-routers')
    await page.getByRole('heading', { name: texts.list.none('Transit routers') }).waitFor()
    await page.locator('.empty').getByRole('link').click()
    await page.getByRole('link', { name: 'router1', exact: true }).click()
    await page.waitForURL(/\/edge-routers\//)
  })
})

describe.skipIf(browserMissing !== null)('The selection of a list in the console', () => {
  test('moves no row, and lets the user disable the selected identities after it has shown their names', async () => {
    for (const name of ['leaver 1', 'leaver 2']) {
      await network.create('identities', { name, type: 'User', isAdmin: false })
    }
    const page = await network.open(1, 'identities?q=leaver')
    const first = page.getByLabel(texts.list.select('leaver 1'))
    const before = await first.boundingBox()
    await first.check()
    const bar = page.getByRole('region', { name: texts.list.selected(1) })
    await bar.waitFor()
    expect((await first.boundingBox())?.y).toBe(before?.y)
    await bar.getByRole('button', { name: texts.list.selectEvery(2) }).click()
    const all = page.getByRole('region', { name: texts.list.selected(2) })
    await all.getByRole('button', { name: texts.acts.disable }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('leaver 1, leaver 2').waitFor()
    expect(await axeFindings(page)).toEqual([])
    await dialog.getByRole('button', { name: texts.acts.disable }).click()
    await dialog.waitFor({ state: 'detached' })
    const rows = await network.rowsOf('identities', 'name contains "leaver"')
    expect(rows.map(({ disabled }) => disabled)).toEqual([true, true])
  })
})

describe.skipIf(browserMissing !== null)('An exported list of the console', () => {
  test('contains the values that the list computes from other records', async () => {
    const page = await network.open(1, 'services')
    await page.getByText('wiki.internal:443').waitFor()
    await page.getByRole('button', { name: texts.list.exports }).click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: texts.list.exportAs.csv }).click(),
    ])
    const lines = readFileSync(await download.path(), 'utf8').split('\r\n')
    expect(lines[0]).toContain('"hosts","clientAddress","hostAddress"')
    const hosted = lines.find((line) => line.includes('"hosted"'))
    expect(hosted).toContain(`"${texts.cell.hosted(1, 1)}","wiki.internal:443"`)
    expect(hosted).toContain('"tcp 127.0.0.1:8000"')
    expect(lines.find((line) => line.includes('"unhosted"'))).toContain(texts.cell.noHost)
  })
})

describe.skipIf(browserMissing !== null)('The list of terminators in the console', () => {
  test('can be narrowed to those whose router is offline, and the filter can be reset', async () => {
    const page = await network.open(1, 'terminators')
    const link = page.getByRole('link', { name: texts.list.terminatorOf('hosted', 'router1') })
    await link.waitFor()
    const state = page.getByLabel('State', { exact: true })
    await state.selectOption('offline')
    await page.getByText(texts.list.noMatch).waitFor()
    await state.selectOption('online')
    await link.waitFor()
    await page.getByRole('button', { name: texts.list.reset }).click()
    await page.waitForURL(/\/terminators$/)
    expect(await state.inputValue()).toBe('')
  })
})

describe.skipIf(browserMissing !== null)('The form of a password in the console', () => {
  test('generates a password and shows it', async () => {
    const page = await network.open(1, 'authenticators/new')
    await page.getByLabel('Method *').selectOption('updb')
    const input = page.getByLabel('Password *')
    expect(await input.getAttribute('type')).toBe('password')
    await page.getByRole('button', { name: texts.password.generate }).click()
    expect(await input.getAttribute('type')).toBe('text')
    expect(await input.inputValue()).toMatch(/^[\w-]{20}$/)
    await page.getByRole('button', { name: texts.password.show }).click()
    expect(await input.getAttribute('type')).toBe('password')
    expect(await axeFindings(page)).toEqual([])
  })
})

describe.skipIf(browserMissing !== null)('The page of the own account in the console', () => {
  test('shows how each session logged in, sets up a second factor, and ends the other sessions of the user', async () => {
    const { profile } = texts
    const identityId = await network.create('identities', {
      name: 'grace',
      type: 'User',
      isAdmin: true,
    })
    const account = { username: 'grace', password: 'a long enough password' }
    await network.create('authenticators', { method: 'updb', identityId, ...account })
    const other = await network.open(1, '', account)
    const page = await network.open(1, 'profile', account)
    await page.getByRole('heading', { name: `${texts.live.names['api-sessions']} 2` }).waitFor()
    const same = page.getByText(texts.live.inAll)
    await same.getByText(texts.live.methods['updb'] ?? '').waitFor()
    // The table offers to end only the other session.
    expect(
      await page.getByRole('button', { name: new RegExp(`^${texts.live.end} \\S+$`) }).count(),
    ).toBe(1)
    await page.setViewportSize({ width: 390, height: 860 })
    const opened = page.locator('tbody .row-summary', { hasText: texts.live.opened })
    await expect.poll(() => opened.count()).toBe(2)
    await page.setViewportSize({ width: 1280, height: 860 })
    await expect.poll(() => opened.count()).toBe(0)
    await page.getByRole('button', { name: profile.endOthers }).click()
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('dialog').getByRole('button', { name: texts.live.end }).click()
    await page.getByRole('heading', { name: `${texts.live.names['api-sessions']} 1` }).waitFor()
    await other.goto(network.url(1, 'services'))
    await other.getByLabel(texts.logIn.username).waitFor()

    await page.getByRole('button', { name: profile.setUp }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('img', { name: profile.qr }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 600 })
      const button = await dialog.getByRole('button', { name: profile.setUp }).boundingBox()
      expect((button?.y ?? 600) + (button?.height ?? 0)).toBeLessThan(600)
    }
    const secret = await dialog.locator('pre').first().innerText()
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate()
    await dialog.getByRole('textbox', { name: texts.logIn.code }).fill(code)
    await dialog.getByRole('button', { name: profile.setUp }).click()
    await page.locator('.facts').getByText(profile.factorOn, { exact: true }).waitFor()

    await page.setViewportSize({ width: 1280, height: 860 })
    await page.getByRole('button', { name: texts.shell.logOut }).click()
    await fillLogIn(page, account)
    const asked = page.getByLabel(texts.logIn.code)
    await asked.waitFor()
    await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('code')
    await page.keyboard.type('000000')
    await page.getByRole('button', { name: texts.logIn.prove }).click()
    await page.getByText(texts.logIn.codeRefused).waitFor()
    // A new code replaces the refused one.
    await page.keyboard.type('1')
    expect(await asked.inputValue()).toBe('1')
  })
})

describe.skipIf(browserMissing !== null)('Activity in the console', () => {
  test('shows many similar changes as one row, which contains each of them', async () => {
    for (const at of [1, 2, 3, 4, 5, 6]) {
      await network.create('services', { name: `bulk-${at}`, encryptionRequired: true })
    }
    const page = await network.open(1, 'activity')
    const run = page.getByRole('button', { name: pageTexts.activity.runDetails }).first()
    await run.waitFor()
    await run.click()
    await page.getByRole('link', { name: 'bulk-6' }).waitFor()
  })
})
