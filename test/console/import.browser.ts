import { describe, expect, test } from 'vitest'

import { pageTexts } from '../../src/console/page-texts.ts'
import { texts } from '../../src/console/texts.ts'
import { axeFindings, browserMissing } from './support/console-browser.ts'
import { consoleNetwork } from './support/console-network.ts'
import { Operator } from './support/operator.ts'

// Goal: an operator imports many records together, sees the changes and their effect on access
// first, and can repeat the import without further effect.

const SERVICES = 50
const names = Array.from({ length: SERVICES }, (_, k) => `app-${String(k + 1).padStart(2, '0')}`)

const network = consoleNetwork(async (made) => {
  await made.create('identities', {
    name: 'ada',
    type: 'User',
    isAdmin: false,
    roleAttributes: ['staff'],
  })
})

function fileOf(text: string) {
  return { name: 'network.yml', mimeType: 'application/yaml', buffer: Buffer.from(text) }
}

/**
 * A network file with services, a config for each, and one policy that grants all of them to
 * #staff.
 */
function servicesFile(): string {
  const configs = names.map(
    (name, k) => `  - name: ${name} host
    configType: host.v1
    data: { protocol: tcp, address: 10.0.0.${k + 1}, port: 80 }`,
  )
  const services = names.map(
    (name) => `  - name: ${name}
    encryptionRequired: true
    configs: [${name} host]
    roleAttributes: [apps]`,
  )
  return `version: 1
configs:
${configs.join('\n')}
services:
${services.join('\n')}
servicePolicies:
  - name: apps for staff
    type: Dial
    semantic: AnyOf
    identityRoles: ['#staff']
    serviceRoles: ['#apps']
`
}

describe.skipIf(browserMissing !== null)('The console’s import', () => {
  test('creates 50 services with their configs after it has shown the changes and their effect on access', async () => {
    const page = await network.open(1)
    const operator = new Operator(page)
    const { import: words } = pageTexts
    await operator.click(page.getByRole('link', { name: texts.pages.wizards, exact: true }))
    await operator.click(page.getByRole('link', { name: texts.wizards.titles.import }))
    await operator.chooseFile(page.getByLabel(words.file, { exact: true }), fileOf(servicesFile()))
    const all = 2 * SERVICES + 1
    await page.getByRole('heading', { name: words.changes(all) }).waitFor()
    await page.getByText('+ service app-50', { exact: true }).waitFor()
    await page.getByText(texts.preview.counts(texts.preview.names.dial, SERVICES, 0)).waitFor()
    await page.getByText('+ ada may use app-01').waitFor()
    expect(await axeFindings(page)).toEqual([])
    expect(await network.rowsOf('services', 'name contains "app-"')).toEqual([])
    await page.getByRole('link', { name: texts.cancel, exact: true }).waitFor()
    await operator.click(page.getByRole('button', { name: words.button(all) }))
    await page.getByText(words.done(all)).waitFor()
    expect(operator.effort).toEqual({ clicks: 6, keys: 0 })

    const made = await network.rowsOf('services', 'name contains "app-" sort by name limit none')
    expect(made.map(({ name }) => name)).toEqual(names)
    expect(made.every(({ configs }) => (configs as readonly string[]).length === 1)).toBe(true)
    await operator.chooseFile(page.getByLabel(words.file, { exact: true }), fileOf(servicesFile()))
    await page.getByText(words.noChange).waitFor()
  })

  test('shows the line of each fault, and changes nothing', async () => {
    const page = await network.open(1, 'wizards/import')
    const { import: words } = pageTexts
    const text = `version: 1
services:
  - name: broken
    encryptionRequird: true
servicePolicies:
  - name: broken too
    type: Dial
    semantic: AnyOf
    serviceRoles: ['@nothing']
`
    const [first] = text.split('servicePolicies:')
    const operator = new Operator(page)
    const field = page.getByLabel(words.file, { exact: true })
    await operator.chooseFile(field, fileOf(text))
    await page.getByText(/^Line 4: .*encryptionRequird/).waitFor()
    await operator.chooseFile(
      field,
      fileOf(text.replace(/services:[^]*servicePolicies/, 'servicePolicies')),
    )
    await page.getByText(/^Line 6: .*no service "nothing"/).waitFor()
    await operator.chooseFile(field, fileOf(`${first}\t: {`))
    await page.getByText(words.faults(1)).waitFor()
    expect(await page.getByRole('button', { name: /^Make / }).count()).toBe(0)
    expect(await network.rowsOf('services', 'name contains "broken"')).toEqual([])
  })

  test('continues with the remaining changes after one change was refused', async () => {
    const page = await network.open(1, 'wizards/import')
    const { import: words } = pageTexts
    const operator = new Operator(page)
    const field = page.getByLabel(words.file, { exact: true })
    const text = (protocol: string) => `version: 1
services:
  - name: half done
    encryptionRequired: true
    configs: [half config]
configs:
  - name: half config
    configType: host.v1
    data: { protocol: ${protocol}, address: 10.1.0.1, port: 80 }
configTypes:
  - name: first in order
`
    await operator.chooseFile(field, fileOf(text('carrier-pigeon')))
    await operator.click(page.getByRole('button', { name: words.button(3) }))
    await page
      .getByText(/^1 of 3 changes are made, then: .*cannot create config half config/)
      .waitFor()
    await operator.chooseFile(field, fileOf(text('tcp')))
    await operator.click(page.getByRole('button', { name: words.button(2) }))
    await page.getByText(words.done(2)).waitFor()
    expect(await network.rowsOf('services', 'name = "half done"')).toHaveLength(1)
  })
})
