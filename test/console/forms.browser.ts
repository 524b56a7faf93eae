import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { texts } from '../../src/console/texts.ts'
import { axeFindings, browserMissing } from './support/console-browser.ts'
import { consoleNetwork, shots } from './support/console-network.ts'

// Goal: a person creates and changes records whose fields depend on a type, in a form with the
// fields of that type; neither the form nor the JSON view loses data.

const network = consoleNetwork(async (made) => {
  await made.create('config-types', {
    name: 'printer.v1',
    schema: {
      type: 'object',
      required: ['tray'],
      properties: {
        tray: { type: 'string' },
        sheets: { type: 'integer', minimum: 1, maximum: 20 },
        duplex: { type: 'boolean' },
        paper: { enum: ['a4', 'letter'] },
        margins: {
          type: 'object',
          required: ['top'],
          properties: { top: { type: 'integer' }, bottom: { type: 'integer' } },
        },
      },
    },
  })
})
const recordOf = network.recordOf.bind(network)

async function chooseType(page: Page, name: string): Promise<void> {
  await page.getByLabel('Config type *').selectOption({ label: name })
}

async function newConfig(name: string, type: string): Promise<Page> {
  const page = await network.open(1, 'configs/new')
  await page.getByLabel('Name *').fill(name)
  await chooseType(page, type)
  return page
}

async function save(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: texts.form.create, exact: true }).click()
  await page.getByRole('heading', { name }).waitFor()
}

const dataOf = async (name: string): Promise<unknown> => (await recordOf('configs', name))['data']

describe.skipIf(browserMissing !== null)('The console’s form of a config', () => {
  test('has the fields of intercept.v1, with lists of values and of objects', async () => {
    const page = await newConfig('intercept of the form', 'intercept.v1')
    // TCP and one range are there at first, because each config needs them.
    await expect.poll(() => page.getByLabel('TCP', { exact: true }).isChecked()).toBe(true)
    await page.getByLabel('UDP', { exact: true }).check()
    await page.getByLabel('Addresses *').fill('wiki.internal\n10.0.0.0/8\n')
    await page.getByRole('button', { name: texts.form.addRowTo('Port ranges') }).click()
    const ranges = [
      ['80', '80'],
      ['8000', '8080'],
    ] as const
    for (const [at, [low, high]] of ranges.entries()) {
      const row = page.getByRole('group', { name: texts.form.row('Port ranges', at) })
      await row.getByLabel('Low *').fill(low)
      await row.getByLabel('High *').fill(high)
    }
    expect(await axeFindings(page)).toEqual([])
    await page.screenshot({ path: join(shots, 'config-form.png'), fullPage: true })
    await save(page, 'intercept of the form')
    expect(await dataOf('intercept of the form')).toEqual({
      protocols: ['tcp', 'udp'],
      addresses: ['wiki.internal', '10.0.0.0/8'],
      portRanges: [
        { low: 80, high: 80 },
        { low: 8000, high: 8080 },
      ],
    })
  })

  test('shows the fault of a missing member at the field of that member', async () => {
    const page = await newConfig('half a host', 'host.v1')
    await page.getByLabel('Protocol *').selectOption('tcp')
    await page.getByLabel('Address *').first().fill('127.0.0.1')
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.locator('.fault', { hasText: texts.faults.required }).first().waitFor()
    expect(await page.getByLabel('Port *').getAttribute('aria-invalid')).toBe('true')
    expect(await page.evaluate('document.activeElement.getAttribute("type")')).toBe('number')
    expect(await page.getByText(/no valid accept content|\(root\)/).count()).toBe(0)
    await page.getByLabel('Port *').fill('80')
    await save(page, 'half a host')
    expect(await dataOf('half a host')).toEqual({
      protocol: 'tcp',
      address: '127.0.0.1',
      port: 80,
    })
  })

  test('replaces the port of host.v1 by allowed port ranges once the user lets the client choose the port', async () => {
    const page = await newConfig('forwarding', 'host.v1')
    await page.getByLabel('Port *').waitFor()
    await page.getByText(texts.form.moreOptions).click()
    await page.getByLabel('Forward port').check()
    expect(await page.getByLabel('Port *').count()).toBe(0)
    await page.getByLabel('Protocol *').selectOption('tcp')
    await page.getByLabel('Address *').first().fill('127.0.0.1')
    await page.getByRole('button', { name: texts.form.addRowTo('Allowed port ranges') }).click()
    const row = page.getByRole('group', { name: texts.form.row('Allowed port ranges', 0) })
    await row.getByLabel('Low *').fill('1')
    await row.getByLabel('High *').fill('70000')
    await page.locator('.fault', { hasText: '0 to 65,535' }).waitFor()
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.locator('.form-foot .notice, .fault', { hasText: '<= 65535' }).first().waitFor()
    expect(await row.getByLabel('High *').getAttribute('aria-invalid')).toBe('true')
    // `fill` appends in number fields of Firefox.
    await row.getByLabel('High *').press('ControlOrMeta+a')
    await row.getByLabel('High *').pressSequentially('7000')
    await page.getByLabel('Forward port').uncheck()
    await page.getByLabel('Forward port').check()
    await save(page, 'forwarding')
    expect(await dataOf('forwarding')).toEqual({
      protocol: 'tcp',
      address: '127.0.0.1',
      forwardPort: true,
      allowedPortRanges: [{ low: 1, high: 7000 }],
    })
  })

  test('has a nested form for each terminator of host.v2', async () => {
    const page = await newConfig('two hosts', 'host.v2')
    const add = page.getByRole('button', { name: texts.form.addRowTo('Terminators') })
    for (const [at, port] of [80, 443].entries()) {
      await add.click()
      const row = page.getByRole('group', { name: texts.form.row('Terminators', at) })
      await row.getByLabel('Protocol *').selectOption('tcp')
      await row.getByLabel('Address *').first().fill('127.0.0.1')
      await row.getByLabel('Port *').fill(String(port))
    }
    await page.getByText('Listen options').first().click()
    const first = page.getByRole('group', { name: texts.form.row('Terminators', 0) })
    await first.getByLabel('Max connections').fill('7')
    await save(page, 'two hosts')
    const host = { protocol: 'tcp', address: '127.0.0.1' }
    expect(await dataOf('two hosts')).toEqual({
      terminators: [
        { ...host, port: 80, listenOptions: { maxConnections: 7 } },
        { ...host, port: 443 },
      ],
    })
  })

  test('is derived from the schema of a config type that an operator created', async () => {
    const page = await newConfig('printer', 'printer.v1')
    await page.getByLabel('Tray *').fill('upper')
    await page.getByLabel('Sheets').fill('3')
    await page.getByLabel('Duplex').check()
    await page.getByLabel('Paper').selectOption('a4')
    await page.getByText('Margins', { exact: true }).click()
    await page.getByLabel('Top', { exact: true }).fill('12')
    await save(page, 'printer')
    expect(await dataOf('printer')).toEqual({
      tray: 'upper',
      sheets: 3,
      duplex: true,
      paper: 'a4',
      margins: { top: 12 },
    })
  })

  test('shows the same data as its JSON view, and keeps members that the schema does not contain', async () => {
    const type = await recordOf('config-types', 'printer.v1')
    const data = { tray: 'lower', vendor: { id: [1, null] }, margins: { top: 1, gutter: 'x' } }
    const id = await network.create('configs', {
      name: 'foreign printer',
      configTypeId: type.id,
      data,
    })
    const page = await network.open(1, `configs/${id}?tab=edit`)
    await page.getByText(texts.form.others(['vendor'])).waitFor()
    await page.getByText(texts.form.others(['gutter'])).waitFor()
    expect(await page.getByLabel('Config type').count()).toBe(0)
    await page.getByLabel('Tray *').fill('middle')
    const toForm = page.getByRole('button', { name: texts.form.asForm, exact: true })
    const toJson = page.getByRole('button', { name: texts.form.json, exact: true })
    await toJson.click()
    const json = page.getByLabel(texts.form.json, { exact: true }).last()
    expect(JSON.parse(await json.inputValue())).toEqual({ ...data, tray: 'middle' })
    await json.fill('{"tray": "middle", "sheets": "many", ')
    expect(await toForm.getAttribute('aria-disabled')).toBe('true')
    await json.fill('{"tray": "middle", "sheets": "many", "vendor": {"id": [1, null]}}')
    await toForm.click()
    expect(await page.getByLabel('Sheets').inputValue()).toBe('"many"')
    await page.getByLabel('Sheets').fill('4')
    await page.getByRole('button', { name: texts.form.save, exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: texts.form.save }).click()
    await page.getByText(texts.form.saved, { exact: true }).waitFor()
    expect(await dataOf('foreign printer')).toEqual({
      tray: 'middle',
      sheets: 4,
      vendor: { id: [1, null] },
    })
  })

  test('is replaced by JSON, with a note, if the config type has no members', async () => {
    await network.create('config-types', { name: 'free.v1', schema: { type: 'object' } })
    const page = await newConfig('free', 'free.v1')
    await page.getByText(texts.form.noForm.noMembers).waitFor()
    await page.getByLabel(texts.form.json, { exact: true }).last().fill('{"a": 1}')
    await save(page, 'free')
    expect(await dataOf('free')).toEqual({ a: 1 })
  })
})

/** Confirms the review of a new record that has an effect on access. */
async function confirm(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: texts.form.create, exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: texts.form.create, exact: true }).click()
  await page.getByRole('heading', { name }).waitFor()
}

describe.skipIf(browserMissing !== null)('The console’s form of a posture check', () => {
  test('shows only the fields of the selected type, and sends no others', async () => {
    const page = await network.open(1, 'posture-checks/new')
    await page.getByLabel('Name *').fill('recent systems')
    const addSystem = page.getByRole('button', { name: texts.form.addRowTo('Operating systems') })
    const type = page.getByLabel('Type *')
    await type.selectOption({ label: 'Windows domain' })
    expect(await addSystem.count()).toBe(0)
    await page.getByLabel('Domains *').fill('corp.example')
    await type.selectOption({ label: 'Operating system' })
    const row = page.getByRole('group', { name: texts.form.row('Operating systems', 0) })
    await row.getByLabel('System *').selectOption('Linux')
    await row.getByLabel('Versions').fill('ten')
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.locator('.fault', { hasText: 'must be semantic version ranges' }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    await row.getByLabel('Versions').fill('>=6.1.0')
    await confirm(page, 'recent systems')
    const made = await recordOf('posture-checks', 'recent systems')
    expect(made['operatingSystems']).toEqual([{ type: 'Linux', versions: ['>=6.1.0'] }])
    expect(made).not.toHaveProperty('domains')
    await page.goto(network.url(1, `posture-checks/${made.id}?tab=edit`))
    await page.getByLabel('Versions').waitFor()
    expect(await page.getByLabel('Type *').count()).toBe(0)
    expect(await axeFindings(page)).toEqual([])
  })

  test('has a row for each process', async () => {
    const page = await network.open(1, 'posture-checks/new')
    await page.getByLabel('Name *').fill('guarded')
    await page.getByLabel('Type *').selectOption({ label: 'Several processes' })
    await page.getByLabel('How many must run *').selectOption({ label: 'At least one' })
    for (const [at, path] of ['/usr/bin/a', '/usr/bin/b'].entries()) {
      if (at > 0) await page.getByRole('button', { name: texts.form.addRowTo('Processes') }).click()
      const row = page.getByRole('group', { name: texts.form.row('Processes', at) })
      await row.getByLabel('System *').selectOption('Linux')
      await row.getByLabel('Path *').fill(path)
    }
    const remove = page.getByRole('button', { name: texts.form.removeRow('Processes', 0) })
    await remove.click()
    await confirm(page, 'guarded')
    expect(await recordOf('posture-checks', 'guarded')).toMatchObject({
      semantic: 'AnyOf',
      processes: [{ osType: 'Linux', path: '/usr/bin/b', hashes: [], signerFingerprints: [] }],
    })
  })
})

describe.skipIf(browserMissing !== null)('The console’s form of an authentication policy', () => {
  test('enables and disables log-in methods, and names signers in the form and the review', async () => {
    const signer = { audience: 'overlay', enabled: true, jwksEndpoint: 'https://idp.test/keys' }
    const ids = await Promise.all(
      ['staff', 'partners'].map((name) =>
        network.create('external-jwt-signers', { ...signer, name, issuer: `https://${name}.test` }),
      ),
    )
    const page = await network.open(1, 'auth-policies/new')
    await page.getByLabel('Name *').fill('tokens')
    await page.getByLabel(texts.logInRules.certAllowed).uncheck()
    expect(await page.getByLabel(texts.logInRules.expired).count()).toBe(0)
    await page.getByLabel(texts.logInRules.updbAllowed).uncheck()
    expect(await page.getByLabel('Min password length').count()).toBe(0)
    await page.getByLabel(texts.logInRules.signers).fill('staff')
    await page.getByRole('option', { name: 'staff' }).click()
    await page.getByLabel(texts.logInRules.secondSigner).fill('part')
    await page.getByRole('option', { name: 'partners' }).click()
    expect(await axeFindings(page)).toEqual([])
    await page.screenshot({ path: join(shots, 'auth-policy-form.png'), fullPage: true })
    await save(page, 'tokens')
    const made = await recordOf('auth-policies', 'tokens')
    expect(made).toMatchObject({
      primary: {
        cert: { allowed: false },
        updb: { allowed: false, minPasswordLength: 10 },
        extJwt: { allowed: true, allowedSigners: [ids[0]] },
      },
      secondary: { requireTotp: false, requireExtJwtSigner: ids[1] },
    })
    await page.goto(network.url(1, `auth-policies/${made.id}?tab=edit`))
    await page.getByRole('button', { name: texts.picker.remove('partners') }).click()
    await page.getByLabel(texts.logInRules.totp).check()
    await page.getByRole('button', { name: texts.form.save, exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.locator('.was', { hasText: '"requireExtJwtSigner": "partners"' }).waitFor()
    await dialog.getByRole('button', { name: texts.form.save }).click()
    await page.getByText(texts.form.saved, { exact: true }).waitFor()
    expect(await recordOf('auth-policies', 'tokens')).toMatchObject({
      primary: made['primary'],
      secondary: { requireTotp: true, requireExtJwtSigner: null },
    })
  })
})

describe.skipIf(browserMissing !== null)('The console’s form of an identity', () => {
  test('has costs and precedences of services that the user selects by name, and names the services in the review', async () => {
    const ids = await Promise.all(
      ['wiki', 'git'].map((name) => network.create('services', { name, encryptionRequired: true })),
    )
    const page = await network.open(1, 'identities/new')
    await page.getByLabel('Name *').fill('host')
    await page.getByText(texts.form.advanced, { exact: true }).click()
    const costs = page.getByLabel('Service hosting costs')
    const pick = async (label: string, name: string): Promise<void> => {
      await page.getByLabel(label).fill(name)
      await page.getByRole('option', { name }).click()
    }
    await pick('Service hosting costs', 'wiki')
    await page.getByLabel('wiki', { exact: true }).fill('7')
    await pick('Service hosting costs', 'git')
    await page.getByLabel('git', { exact: true }).fill('70000')
    await page.locator('.fault', { hasText: '0 to 65,535' }).waitFor()
    await page.getByRole('button', { name: texts.picker.remove('git') }).click()
    await pick('Service hosting precedences', 'git')
    await page.getByLabel('git', { exact: true }).selectOption('failed')
    await page.getByText(texts.form.tags).waitFor()
    expect(await costs.count()).toBe(1)
    expect(await axeFindings(page)).toEqual([])
    await page.screenshot({ path: join(shots, 'identity-form.png'), fullPage: true })
    await confirm(page, 'host')
    const made = await recordOf('identities', 'host')
    expect(made).toMatchObject({
      serviceHostingCosts: { [ids[0] ?? '']: 7 },
      serviceHostingPrecedences: { [ids[1] ?? '']: 'failed' },
    })
    await page.goto(network.url(1, `identities/${made.id}?tab=edit`))
    await page.getByText(texts.form.advanced, { exact: true }).click()
    await page.getByRole('button', { name: texts.picker.remove('wiki') }).click()
    await page.getByLabel('git', { exact: true }).selectOption('required')
    await page.getByRole('button', { name: texts.form.save, exact: true }).click()
    const dialog = page.getByRole('dialog')
    await expect
      .poll(async () => await dialog.locator('.diff dd').allTextContents())
      .toEqual([
        `${texts.form.before}wiki: 7`,
        `${texts.form.before}git: failed`,
        `${texts.form.after}git: required`,
      ])
    await dialog.getByRole('button', { name: texts.form.save }).click()
    await page.getByText(texts.form.saved, { exact: true }).waitFor()
    expect(await recordOf('identities', 'host')).toMatchObject({
      serviceHostingCosts: {},
      serviceHostingPrecedences: { [ids[1] ?? '']: 'required' },
    })
  })
})

describe.skipIf(browserMissing !== null)('The console’s form of an enrollment', () => {
  test('takes the expiry from a preset, and shows the days that are left', async () => {
    const identity = { name: 'new laptop', type: 'Device', isAdmin: false }
    await network.create('identities', identity)
    const page = await network.open(1, 'enrollments/new')
    await page.getByLabel('Method *').selectOption('ott')
    await page.getByLabel('Identity *').fill('new laptop')
    await page.getByRole('option', { name: 'new laptop' }).first().click()
    const before = Date.now()
    await page.getByRole('button', { name: texts.ends.presets.week, exact: true }).click()
    await page.getByText(/^Ends in 7 days|^Ends in 6 days/).waitFor()
    await page.getByRole('button', { name: texts.form.create, exact: true }).click()
    await page.waitForURL(/enrollments\/(?!new$)[^/]+$/)
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    const [made] = await network.rowsOf('enrollments', `id = "${id}"`)
    const days = (Date.parse(String(made?.['expiresAt'])) - before) / 86_400_000
    expect(Math.round(days)).toBe(7)
  })
})
