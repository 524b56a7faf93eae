import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { texts } from '../../src/console/texts.ts'
import { until } from '../process/support/client.ts'
import { axeFindings, browserMissing, logIn, overflows } from './support/console-browser.ts'
import { consoleNetwork, management } from './support/console-network.ts'

// Goal: forms, lists and dialogs show each fault where it is visible, and never let a person change
// or delete something without showing the consequences.

const network = consoleNetwork(async (made) => {
  await made.create('services', { name: 'wiki', encryptionRequired: true, roleAttributes: ['web'] })
})
const create = network.create.bind(network)
const recordOf = network.recordOf.bind(network)

async function configTypeOf(name: string): Promise<string> {
  return (await recordOf('config-types', name)).id
}

const host = { protocol: 'tcp', address: '127.0.0.1', port: 80 } as const

/** Whether the element with the focus is within the window. */
const focusIsInSight = `(() => {
  const { top, bottom } = document.activeElement.getBoundingClientRect()
  return top >= 0 && bottom <= innerHeight
})()`

/** The controls that are in the right padding of the open dialog. */
const controlsOutsideDialog = `(() => {
  const body = document.querySelector('dialog .dialog-body')
  const edge = body.getBoundingClientRect().right - parseFloat(getComputedStyle(body).paddingRight)
  return [...body.querySelectorAll('input, button')]
    .filter((one) => one.getBoundingClientRect().right > edge + 0.5)
    .map((one) => one.textContent || one.name)
})()`

async function accountOf(name: string, permissions: readonly string[]) {
  const identityId = await create('identities', { name, type: 'User', isAdmin: false, permissions })
  const account = { username: name, password: 'a long enough password' }
  await create('authenticators', { method: 'updb', identityId, ...account })
  return account
}

async function pageOf(account: { username: string; password: string }): Promise<Page> {
  const page = await network.browser.page()
  await logIn(page, network.url(1), account)
  return page
}

describe.skipIf(browserMissing !== null)('A form in the console', () => {
  test('shows the refusal of a value at its field without opening the review, focuses this field and scrolls to it', async () => {
    const page = await network.open(1, 'services/new')
    await page.getByLabel('Name *').fill('wiki')
    await page.getByText(texts.form.advanced, { exact: true }).click()
    await page.getByLabel('Idle time').fill('5')
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.locator('.fault', { hasText: texts.faults.duplicate }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(await page.evaluate('document.activeElement.value')).toBe('wiki')
    expect(await page.evaluate(focusIsInSight)).toBe(true)
    expect(await page.getByText(texts.faults.duplicate).count()).toBe(1)
  })

  test('marks each empty required field itself, and moves the focus to the first', async () => {
    const page = await network.open(1, 'cas/new')
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.locator('.fault', { hasText: texts.faults.required }).nth(1).waitFor()
    expect(await page.evaluate('document.activeElement.labels[0].textContent')).toContain('Name')
    expect(await page.getByLabel('Certificate *').getAttribute('aria-invalid')).toBe('true')
    await page.getByLabel('Name *').fill('devices')
    await expect.poll(() => page.locator('.fault').count()).toBe(1)
    expect(await axeFindings(page)).toEqual([])
  })

  test('opens the group of a faulty field, and shows the fault at that field', async () => {
    const page = await network.open(1, 'auth-policies/new')
    await page.getByLabel('Name *').fill('strict')
    await page.getByLabel('Min password length').fill('10000')
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.locator('.fault', { hasText: 'less than or equal to 100' }).waitFor()
    expect(await page.getByLabel('Min password length').getAttribute('aria-invalid')).toBe('true')
  })

  test('initially requires encryption for a service, enables a signer, and allows certificates and passwords in an auth policy', async () => {
    const page = await network.open(1, 'services/new')
    expect(await page.getByLabel('End-to-end encryption required').isChecked()).toBe(true)
    await page.goto(network.url(1, 'external-jwt-signers/new'))
    expect(await page.getByLabel('Enabled', { exact: true }).isChecked()).toBe(true)
    await page.goto(network.url(1, 'auth-policies/new'))
    await page.getByLabel('Name *').fill('of the form')
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.getByRole('heading', { name: 'of the form' }).waitFor()
    const { primary } = await recordOf('auth-policies', 'of the form')
    expect(primary).toMatchObject({ cert: { allowed: true }, updb: { allowed: true } })
  })

  test('keeps the values typed into a wizard when the user leaves the page and returns', async () => {
    const page = await network.open(1, 'wizards/service')
    await page.getByLabel('Name *').fill('half typed')
    await page.getByRole('link', { name: 'Services', exact: true }).click()
    await page.getByRole('heading', { name: 'Services' }).waitFor()
    await page.goto(network.url(1, 'wizards/service'))
    expect(await page.getByLabel('Name *').inputValue()).toBe('half typed')
  })
})

describe.skipIf(browserMissing !== null)('A deletion in the console', () => {
  test('names the services that use a config, and afterwards reports that they lost it', async () => {
    const configTypeId = await configTypeOf('host.v1')
    const id = await create('configs', { name: 'victim host', configTypeId, data: host })
    await create('services', { name: 'victim', encryptionRequired: true, configs: [id] })
    const page = await network.open(1, `configs/${id}`)
    await page.getByRole('button', { name: texts.record.delete }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(texts.uses.changed('1 service')).waitFor()
    await dialog.getByRole('link', { name: 'victim' }).waitFor()
    await dialog.getByLabel(texts.manage.typeThis('victim host')).fill('victim host')
    await dialog.getByRole('button', { name: texts.record.delete }).click()
    await page.getByText(texts.uses.detached('1 service')).waitFor()
    expect((await recordOf('services', 'victim'))['configs']).toBeNull()
  })

  test('shows the terminators that would be deleted with a service in one line for each router, with their number', async () => {
    const router = (await recordOf('edge-routers', 'router1')).id
    const service = await create('services', { name: 'twice hosted', encryptionRequired: true })
    for (const port of [9201, 9202]) {
      const address = `tcp:127.0.0.1:${port}`
      await create('terminators', { service, router, binding: 'transport', address })
    }
    const page = await network.open(1, `services/${service}`)
    await page.getByRole('button', { name: texts.record.delete }).click()
    const dialog = page.getByRole('dialog')
    const title = texts.list.terminatorOf('twice hosted', 'router1')
    await dialog.getByRole('listitem').filter({ hasText: title }).getByText('×2').waitFor()
    await dialog.getByRole('link', { name: title }).click()
    await page.getByText(texts.list.total(2, true), { exact: true }).waitFor()
    await network.send('DELETE', `services/${service}`)
  })

  test('is refused for an authentication policy that identities use', async () => {
    const authPolicyId = await create('auth-policies', {
      name: 'in use',
      primary: {
        cert: { allowed: true, allowExpiredCerts: false },
        extJwt: { allowed: false, allowedSigners: [] },
        updb: {
          allowed: true,
          lockoutDurationMinutes: 0,
          maxAttempts: 0,
          minPasswordLength: 8,
          requireMixedCase: false,
          requireNumberChar: false,
          requireSpecialChar: false,
        },
      },
      secondary: { requireTotp: false, requireExtJwtSigner: null },
    })
    await create('identities', { name: 'its user', type: 'User', isAdmin: false, authPolicyId })
    const page = await network.open(1, `auth-policies/${authPolicyId}`)
    await page.getByRole('button', { name: texts.record.delete }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(texts.uses.kept('1 identity')).waitFor()
    await dialog.getByLabel(texts.manage.typeThis('in use')).fill('in use')
    const button = dialog.getByRole('button', { name: texts.record.delete })
    expect(await button.getAttribute('aria-disabled')).toBe('true')
  })

  test('leaves, at the URL of the missing record, a page that links to the list', async () => {
    const page = await network.open(1, 'services/long-gone')
    await page.getByRole('link', { name: texts.failure.toList('Services') }).click()
    await page.getByRole('heading', { name: 'Services' }).waitFor()
    expect(await page.title()).toBe('Services · Flotilla')
  })
})

describe.skipIf(browserMissing !== null)('A list in the console', () => {
  test('greys out the rows of the previous filter if a filter is invalid, and shows the fields that a filter may use', async () => {
    const page = await network.open(1, 'services')
    await page.getByRole('link', { name: 'wiki' }).waitFor()
    await page.getByLabel(texts.list.filter('Services')).fill('=nothing = 1')
    await page.getByText(/A filter may use .*terminatorStrategy/).waitFor()
    await page.getByText(texts.list.noField('nothing')).waitFor()
    await page.locator('.outdated').getByRole('link', { name: 'wiki' }).waitFor()
  })

  test('offers to filter by role attribute only if its records have role attributes', async () => {
    const page = await network.open(1, 'services')
    const { filter, filterPlaceholder } = texts.list
    const hint = async (many: string) =>
      await page.getByLabel(filter(many)).getAttribute('placeholder')
    expect(await hint('Services')).toBe(filterPlaceholder(true))
    await page.goto(network.url(1, 'config-types'))
    expect(await hint('Config types')).toBe(filterPlaceholder(false))
  })

  test('opens the wizard for a new identity, which creates an identity that can enroll', async () => {
    const page = await network.open(1, 'identities')
    await page.getByRole('button', { name: texts.list.create('identity') }).click()
    await page.getByRole('heading', { name: texts.wizards.titles.identity }).waitFor()
    await page.getByRole('link', { name: texts.wizards.plainIdentity }).click()
    await page.getByRole('heading', { name: 'Create identity' }).waitFor()
  })

  test.each([1440, 390])('with long names is not wider than a window of %d px', async (width) => {
    const name = 'n'.repeat(300)
    const id = await create('services', { name, encryptionRequired: true })
    const page = await network.browser.page({ width })
    await logIn(page, network.url(1), network.cluster.admin)
    for (const path of [`services/${id}`, 'services', `access?service=${id}`, 'topology']) {
      await page.goto(network.url(1, path))
      await page.locator('h1').first().waitFor()
      await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' })
      expect(await overflows(page)).toBe(false)
    }
    await network.send('DELETE', `services/${id}`)
  })
})

describe.skipIf(browserMissing !== null)('The console', () => {
  test('loads lists compressed, so that they appear soon over a slow connection', async () => {
    const made = Array.from({ length: 60 }, (_, k) => {
      const roleAttributes = ['compressed', `group-${k}`]
      return create('services', { name: `c${k}`, encryptionRequired: true, roleAttributes })
    })
    await Promise.all(made)
    const page = await network.open(1, 'services')
    await page.getByRole('link', { name: 'c59' }).waitFor()
    const sizes = await page.evaluate<readonly { readonly sent: number; readonly read: number }[]>(
      `performance.getEntriesByType('resource')
        .filter(({ name }) => name.includes('/services?'))
        .map(({ encodedBodySize, decodedBodySize }) => ({
          sent: encodedBodySize, read: decodedBodySize,
        }))`,
    )
    expect(sizes.length).toBeGreaterThan(0)
    for (const { sent, read } of sizes) {
      expect(read).toBeGreaterThan(20_000)
      expect(sent).toBeLessThan(read / 5)
    }
  })

  test('shows the button for a new record and only the column of names while a list is being loaded', async () => {
    const page = await network.open(1)
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    await page.route(/v1\/services\?/, async (route) => {
      await held
      await route.continue()
    })
    await page.getByRole('link', { name: 'Services', exact: true }).click()
    const table = page.getByRole('region', { name: 'Services' })
    await table.and(page.locator('[aria-busy="true"]')).waitFor()
    await page.getByRole('button', { name: texts.list.create('service') }).waitFor()
    expect(await table.locator('thead th').allInnerTexts()).toEqual(['Name'])
    release()
    await expect.poll(() => table.locator('thead th').allInnerTexts()).toContain('State')
  })

  test('shows no count for an empty list', async () => {
    const page = await network.open(1, 'posture-checks')
    await page.getByRole('heading', { name: texts.list.none('Posture checks') }).waitFor()
    expect(await page.getByText(texts.list.total(0, false)).count()).toBe(0)
  })

  test('uses the singular when it counts one selected record', async () => {
    const page = await network.open(1, 'service-policies/new')
    await page.getByLabel('Service roles', { exact: true }).fill('#web')
    await page.getByRole('option', { name: '#web' }).first().click()
    await page.getByText('Matches 1 service now', { exact: true }).waitFor()
  })

  test('offers existing role attributes before a new one, so that Enter adds an existing one', async () => {
    const page = await network.open(1, 'service-policies/new')
    await page.getByLabel('Service roles', { exact: true }).fill('we')
    const options = page.getByRole('listbox').getByRole('option')
    await options.getByText(texts.roles.newAttribute).waitFor()
    expect(await options.allInnerTexts()).toEqual([
      `#web\n${texts.roles.attribute}`,
      `#we\n${texts.roles.newAttribute}`,
    ])
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: texts.picker.remove('#web') }).waitFor()
  })

  test('shows invisible characters in a record’s name as codes, and shows the name in the title of the tab', async () => {
    const id = await create('services', { name: 'pay\u200Bpal', encryptionRequired: true })
    const page = await network.open(1, 'services?q=pay')
    await page.getByRole('link', { name: 'pay‹U+200B›pal' }).click()
    await page.getByRole('heading', { level: 1, name: 'pay‹U+200B›pal' }).waitFor()
    await until('the title has the name', async () => {
      return (await page.title()) === 'pay‹U+200B›pal · Services · Flotilla'
    })
    await network.send('DELETE', `services/${id}`)
  })

  test('offers the sign-in page when the session ends while a page is open', async () => {
    const page = await network.open(1, 'services')
    const token = await page.evaluate<string>(
      "JSON.parse(sessionStorage.getItem('flotilla.session')).token",
    )
    const client = await network.cluster.loggedIn(1)
    const [, id = ''] = token.split('.')
    await client.request('DELETE', `${management}/api-sessions/${id}`)
    const again = page.getByRole('dialog', { name: texts.logIn.again })
    await again.waitFor()
    await page.setViewportSize({ width: 390, height: 860 })
    expect(await page.evaluate(controlsOutsideDialog)).toEqual([])
    await page.setViewportSize({ width: 1280, height: 860 })
    await again.getByRole('button', { name: texts.logIn.bySignInPage }).click()
    await page.waitForURL(/\/oidc\/login\/password/)
    await page.getByLabel('User name').fill(network.cluster.admin.username)
    await page.getByLabel('Password').fill(network.cluster.admin.password)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Services', level: 1 }).waitFor()
  })

  test('links only to pages that a user with read permissions for services and identities may open, and refuses this user the pages that create a service', async () => {
    const page = await pageOf(await accountOf('reader', ['service.read', 'identity.read']))
    await page.getByRole('heading', { name: texts.pages.home }).waitFor()
    const links = page.locator('nav.nav a')
    await until('the links are those of the reader', async () => (await links.count()) === 5)
    expect(await links.allTextContents()).toEqual([
      'Home',
      'Access',
      'Activity',
      'Identities',
      'Services',
    ])
    for (const path of ['wizards/service', 'services/new']) {
      await page.goto(network.url(1, path))
      await page.getByText(texts.failure.notAllowed).waitFor()
    }
  })

  test('offers a user no change that controllers would refuse, and no column without values', async () => {
    const id = await network.create('services', { name: 'wiki archive', encryptionRequired: true })
    const page = await pageOf(await accountOf('auditor', ['service.read']))
    await page.goto(network.url(1, 'services?q=wiki'))
    await page.getByRole('link', { name: 'wiki archive' }).click()
    const tabs = page.getByRole('navigation', { name: texts.record.tabs })
    await tabs.getByText(texts.record.tabNames.overview).waitFor()
    expect(await tabs.getByText(texts.record.tabNames.edit).count()).toBe(0)
    expect(await page.getByRole('button', { name: texts.record.delete }).count()).toBe(0)
    await page.goBack()
    await page.getByRole('link', { name: 'wiki', exact: true }).waitFor()
    // The auditor may not read the terminators and configs that the other columns show.
    expect(await page.locator('thead th').allInnerTexts()).toEqual([
      'Name',
      'Role attributes',
      'Created',
    ])
    expect(await page.getByRole('button', { name: texts.list.create('service') }).count()).toBe(0)
    await network.send('DELETE', `services/${id}`)
  })

  test('opens in a new tab without another log-in, and a log-out in one tab also logs out the other', async () => {
    const page = await network.open(1, 'services')
    const other = await page.context().newPage()
    await other.goto(network.url(1, 'identities'))
    await other.getByRole('heading', { name: 'Identities' }).waitFor()
    await other.getByRole('button', { name: texts.shell.logOut }).click()
    for (const tab of [page, other]) await tab.getByLabel(texts.logIn.username).waitFor()
  })

  test('stops reporting a controller as unreachable once it responds again', async () => {
    const [first = 2] = await network.cluster.followers()
    const page = await network.open(first, 'services')
    // Until the tab has the list of controllers, it knows only the controller that fails.
    await page.getByText(texts.shell.via(`ctrl${first}`)).waitFor()
    const { cluster } = network
    cluster.kill(first)
    await page.getByText(new RegExp(`cannot reach ctrl${first}`)).waitFor()
    cluster.run(first)
    await page
      .getByText(new RegExp(`cannot reach ctrl${first}`))
      .waitFor({ state: 'detached', timeout: 60_000 })
    network.browser.complaints.length = 0
  })

  test('closes the menu of a narrow window when the user presses Escape', async () => {
    const page = await network.browser.page({ width: 390 })
    await logIn(page, network.url(1), network.cluster.admin)
    await page.getByRole('button', { name: texts.shell.openMenu }).click()
    await page.locator('.sidebar[data-open="true"]').waitFor()
    await page.keyboard.press('Escape')
    await page.locator('.sidebar[data-open="false"]').waitFor({ state: 'attached' })
  })
})
