import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { pageTexts } from '../../src/console/page-texts.ts'
import { eventTitle } from '../../src/console/pages/events/event-text.ts'
import { texts } from '../../src/console/texts.ts'
import { axeFindings, browserMissing, logIn, overflows } from './support/console-browser.ts'
import { consoleNetwork, shots } from './support/console-network.ts'

// Goal: an operator finds out who changed what, and undoes a change, without the command line.

const { activity } = pageTexts
const connectionToController = {
  id: '1',
  namespace: 'connect',
  timestamp: '',
  fields: { dst_type: 'ctrl' },
}
const attack = '<img src=x onerror="alert(1)">'
const made = { policyId: '', serviceId: '', goneId: '' }

const network = consoleNetwork(async (cluster) => {
  made.serviceId = await cluster.create('services', {
    name: 'crm',
    encryptionRequired: true,
    roleAttributes: ['crm'],
  })
  const bobId = await cluster.create('identities', {
    name: 'Bob',
    type: 'User',
    isAdmin: false,
    roleAttributes: ['sales'],
  })
  made.policyId = await cluster.create('service-policies', {
    name: 'sales to crm',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#sales'],
    serviceRoles: ['#crm'],
  })
  await cluster.send('PATCH', `service-policies/${made.policyId}`, { identityRoles: ['#nobody'] })
  await cluster.create('service-policies', {
    name: 'Bob hosts crm',
    type: 'Bind',
    semantic: 'AnyOf',
    identityRoles: [`@${bobId}`],
    serviceRoles: [`@${made.serviceId}`],
  })
  made.goneId = await cluster.create('services', { name: attack, encryptionRequired: true })
  await cluster.send('DELETE', `services/${made.goneId}`)
})

const entryOf = (page: Page, text: string) => page.locator('.activity-list li', { hasText: text })

describe.skipIf(browserMissing !== null)('The Activity page of the console', () => {
  test('shows who changed a policy, and undoes the change after a preview', async () => {
    const page = await network.open(1)
    await page.getByRole('link', { name: texts.pages.activity, exact: true }).click()
    await page.getByLabel(activity.record).fill('sales to crm')
    const changed = entryOf(page, 'changed service policy sales to crm')
    await changed.waitFor()
    await expect.poll(() => page.locator('.activity-list > li').count()).toBe(2)
    await changed.getByText('Default Admin').first().waitFor()
    expect(await changed.locator('.activity-what').innerText()).toContain('Identity roles')
    await changed.locator('.expand').click()
    await changed.locator('.was', { hasText: '#sales' }).waitFor()
    await changed.getByRole('button', { name: activity.undo.open }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Bob may use crm').waitFor()
    await dialog.locator('.is', { hasText: '#sales' }).waitFor()
    await page.screenshot({ path: join(shots, 'undo-light-1280.png') })
    await dialog.getByRole('button', { name: activity.undo.button, exact: true }).click()
    await page.getByText(activity.undo.done).waitFor()
    const policy = await network.recordOf('service-policies', 'sales to crm')
    expect(policy['identityRoles']).toEqual(['#sales'])
    await changed.nth(1).getByRole('button', { name: activity.undo.open }).click()
    await dialog
      .getByText(/service policy sales to crm was changed|identityRoles/)
      .first()
      .waitFor()
  })

  test('names the services of changed hosting costs, and the signers of an authentication policy', async () => {
    const signer = { audience: 'overlay', enabled: true, jwksEndpoint: 'https://idp.test/keys' }
    const id = await network.create('external-jwt-signers', {
      ...signer,
      name: 'staff',
      issuer: 'https://staff.test',
    })
    await network.create('auth-policies', {
      name: 'tokens',
      primary: {
        cert: { allowed: false, allowExpiredCerts: false },
        updb: {
          allowed: false,
          minPasswordLength: 10,
          maxAttempts: 5,
          lockoutDurationMinutes: 0,
          requireMixedCase: false,
          requireNumberChar: false,
          requireSpecialChar: false,
        },
        extJwt: { allowed: true, allowedSigners: [id] },
      },
      secondary: { requireTotp: false, requireExtJwtSigner: id },
    })
    const host = await network.create('identities', {
      name: 'host',
      type: 'Device',
      isAdmin: false,
    })
    await network.send('PATCH', `identities/${host}`, {
      serviceHostingCosts: { [made.serviceId]: 7 },
    })
    const page = await network.open(1, 'activity?record=host')
    const changed = entryOf(page, 'changed identity host')
    await changed.locator('.expand').click()
    await changed.locator('.is', { hasText: 'crm: 7' }).waitFor()
    await page.goto(network.url(1, 'activity?record=tokens'))
    const created = entryOf(page, 'created authentication policy tokens')
    await created.locator('.expand').click()
    await created.locator('.is', { hasText: '"requireExtJwtSigner": "staff"' }).waitFor()
    await created.locator('.is', { hasText: /"allowedSigners": \[\s*"staff"/ }).waitFor()
  })

  test('finds a deleted record by its name, and creates the record again with the same ID', async () => {
    const page = await network.open(2, 'activity?action=delete&kind=service')
    const deleted = entryOf(page, 'deleted service')
    await deleted.getByText(attack).first().waitFor()
    expect(await deleted.locator('.expandable a', { hasText: attack }).count()).toBe(0)
    await deleted.locator('.expand').click()
    await deleted.getByRole('button', { name: activity.undo.open }).click()
    const dialog = page.getByRole('dialog')
    await dialog.locator('.is').first().waitFor()
    await dialog.getByRole('button', { name: activity.undo.button, exact: true }).click()
    await page.getByText(activity.undo.done).waitFor()
    expect((await network.recordOf('services', attack)).id).toBe(made.goneId)
  })

  test('can be filtered by actor, kind, action and time, and keeps the filters in its URL', async () => {
    const page = await network.open(1, 'activity')
    await page.getByLabel(activity.actor).fill('Default Admin')
    await page.getByLabel(activity.kind).selectOption('identity')
    await page.getByLabel(activity.actionLabel).selectOption('create')
    await page.getByLabel(activity.range, { exact: true }).selectOption('24')
    await entryOf(page, 'created identity Bob').waitFor()
    // The page searches for a typed actor after a short pause.
    await page.waitForURL(/actor=Default\+Admin/)
    const url = page.url()
    await page.goto(url)
    const created = entryOf(page, 'created identity Bob')
    await created.locator('.expand').click()
    await created.getByRole('button', { name: activity.undo.open }).click()
    // The undo of a creation deletes the record.
    await page.getByRole('dialog').locator('.button.destroy').waitFor()
    await page.goto(network.url(1, 'activity?record=Bob+hosts+crm'))
    await page.locator('.expand').click()
    await page.locator('.is', { hasText: '@Bob' }).waitFor()
    await page.getByLabel(activity.actor).fill('nobody')
    await page.getByText(activity.none, { exact: true }).waitFor()
  })

  test('shows live events with linked record names, and does not include traffic reports at first', async () => {
    const page = await network.open(1, 'activity/live')
    await page.getByLabel(pageTexts.events.filter).fill('printer')
    const id = await network.create('services', { name: 'printer', encryptionRequired: true })
    const row = page.locator('.event-list li').filter({ hasText: 'Service created' })
    const link = row.getByRole('link', { name: 'printer' })
    await link.waitFor()
    expect(await link.getAttribute('href')).toBe(`/console/services/${id}`)
    await page.locator('.event-list', { hasText: pageTexts.events.by('Default Admin') }).waitFor()
    expect(await page.getByLabel(pageTexts.events.usage).isChecked()).toBe(false)
  })

  test('names a controller that disconnects, and hides connections to controllers until the user asks for them', async () => {
    const [first = 1] = await network.cluster.followers()
    const others = [1, 2, 3].filter((k) => k !== first)
    const page = await network.open(others[0] ?? 1, 'activity/live')
    await page.getByText(texts.news.live, { exact: true }).waitFor()
    network.cluster.kill(first)
    const lost = pageTexts.events.types['peer.disconnected'] ?? ''
    const row = page.locator('.event-list li', { hasText: lost })
    await row
      .filter({ hasText: `ctrl${first}` })
      .first()
      .waitFor()
    network.cluster.run(first)
    const back = pageTexts.events.types['peer.connected'] ?? ''
    await page
      .locator('.event-list li', { hasText: back })
      .filter({ hasText: `ctrl${first}` })
      .first()
      .waitFor({ timeout: 60_000 })
    const connections = page
      .locator('.event-list')
      .getByText(eventTitle(connectionToController), { exact: true })
    expect(await connections.count()).toBe(0)
    await page.getByLabel(pageTexts.events.usage).check()
    await connections.first().waitFor()
    network.browser.complaints.length = 0
  })

  test('shows changes, but no option to include log-ins, to a user with read permission, and refuses this user’s undo with the reason', async () => {
    const account = { username: 'reader', password: 'a long enough password' }
    const identityId = await network.create('identities', {
      name: 'reader',
      type: 'User',
      isAdmin: false,
      permissions: ['admin_readonly'],
    })
    await network.create('authenticators', { method: 'updb', identityId, ...account })
    const page = await network.browser.page()
    await logIn(page, network.url(1), account)
    await page.goto(network.url(1, 'activity'))
    await entryOf(page, 'changed service policy sales to crm').first().waitFor()
    await page.goto(network.url(1, 'activity?kind=servicePolicy'))
    await entryOf(page, 'created service policy sales to crm').waitFor()
    expect(await page.getByLabel(activity.all).count()).toBe(0)
    await page.goto(network.url(1, `services/${made.serviceId}?tab=activity`))
    const entry = entryOf(page, 'created service crm')
    await entry.locator('.expand').click()
    await entry.getByRole('button', { name: activity.undo.open }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: activity.undo.button, exact: true }).click()
    await dialog.getByText(texts.failure.notAllowed).waitFor()
    expect((await network.recordOf('services', 'crm')).id).toBe(made.serviceId)
  })

  test.each([
    ['dark', 1440],
    ['light', 390],
  ] as const)(
    'is accessible and fits its window in the %s scheme at a width of %i px',
    async (scheme, width) => {
      const page = await network.browser.page({ scheme, width })
      await logIn(page, network.url(1), network.cluster.admin)
      const findings: string[] = []
      const paths = ['activity', 'activity/live', `service-policies/${made.policyId}?tab=activity`]
      for (const path of paths) {
        await page.goto(network.url(1, path))
        await page.locator('.activity-list li, .event-list li').first().waitFor()
        if (path !== 'activity/live') await page.locator('.expand').nth(1).click()
        findings.push(...(await axeFindings(page)))
        if (await overflows(page)) findings.push(`${path} is wider than its window`)
        const name = path.split('?')[0]?.replaceAll('/', '-') ?? ''
        await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`) })
      }
      expect(findings).toEqual([])
    },
  )
})
