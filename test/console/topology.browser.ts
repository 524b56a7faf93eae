import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { pageTexts } from '../../src/console/page-texts.ts'
import { texts } from '../../src/console/texts.ts'
import { until } from '../process/support/client.ts'
import { axeFindings, browserMissing, overflows } from './support/console-browser.ts'
import { type ConsoleNetwork, consoleNetwork, shots } from './support/console-network.ts'

// Goal: one drawing shows an operator how routers are linked, which links are slow or down, and
// which circuits and terminators a router has.

const LONG = 'router of the second building in the north of the city'

const network = consoleNetwork(async (made: ConsoleNetwork) => {
  await made.create('edge-routers', { name: LONG })
  const { id: router } = await made.recordOf('edge-routers', 'router1')
  for (const name of ['wiki', 'mail']) {
    const service = await made.create('services', { name, encryptionRequired: true })
    const terminator = { service, router, binding: 'transport', address: 'tcp:127.0.0.1:1' }
    await made.create('terminators', terminator)
  }
})

const { topology } = pageTexts

function routerIn(page: Page, name: string, isOnline = true) {
  return page.getByRole('button', { name: topology.routerLabel(name, isOnline), exact: true })
}

function detailsOf(page: Page) {
  return page.getByRole('region', { name: topology.details })
}

async function visibleWidth(page: Page): Promise<number> {
  const box = await page.locator('.drawing > svg').getAttribute('viewBox')
  return Number(box?.split(' ')[2])
}

describe.skipIf(browserMissing !== null)('The console’s Topology page', () => {
  test('shows the links and the hosted services of the router under the pointer', async () => {
    const page = await network.open(1, 'topology')
    const details = detailsOf(page)
    await details.getByText(topology.pointAt).waitFor()
    await routerIn(page, 'router1').hover()
    await details.getByText(topology.hosted(2)).waitFor()
    expect(await details.locator('a').allTextContents()).toEqual(['router1', 'mail', 'wiki'])
    await details.getByText(topology.linksOf(1), { exact: true }).waitFor()
    await details.getByText(topology.byRouter).first().waitFor()
  })

  test('keeps the selected router, fades routers without a link to it, and clears the selection on Escape', async () => {
    const page = await network.open(1, 'topology')
    await routerIn(page, 'router2').click()
    await page.mouse.move(5, 5)
    await detailsOf(page).getByRole('heading', { name: 'router2' }).waitFor()
    expect(await page.locator('.node.away').count()).toBe(1)
    await page.keyboard.press('Escape')
    await detailsOf(page).getByText(topology.pointAt).waitFor()
    expect(await page.locator('.node.away').count()).toBe(0)
  })

  test('shows the state and the cost of a link that the user selects from a router’s details', async () => {
    const page = await network.open(1, 'topology')
    await routerIn(page, 'router1').click()
    const details = detailsOf(page)
    await details.getByRole('button', { name: 'router2' }).click()
    await details.getByRole('heading', { name: /router1|router2/ }).waitFor()
    await details.getByText(topology.cost, { exact: true }).waitFor()
    expect(await details.getByText(texts.live.linkStates.up, { exact: true }).count()).toBe(1)
  })

  test('can be zoomed by buttons and keys, and reset to show everything', async () => {
    const page = await network.open(1, 'topology')
    await routerIn(page, 'router1').waitFor()
    const whole = await visibleWidth(page)
    await page.getByRole('button', { name: topology.zoomIn }).click()
    await until('it is larger', async () => (await visibleWidth(page)) < whole)
    await routerIn(page, 'router1').focus()
    const once = await visibleWidth(page)
    await page.keyboard.press('+')
    await until('it is larger still', async () => (await visibleWidth(page)) < once)
    await page.getByRole('button', { name: topology.showAll }).click()
    await until('it is whole', async () => (await visibleWidth(page)) === whole)
  })

  test('moves the focus from router to router with the arrow keys', async () => {
    const page = await network.open(1, 'topology')
    await routerIn(page, 'router1').focus()
    const reached = new Set<string>()
    for (const key of [
      'ArrowLeft',
      'ArrowRight',
      'ArrowUp',
      'ArrowDown',
      'ArrowLeft',
      'ArrowRight',
    ]) {
      await page.keyboard.press(key)
      reached.add(
        await page.evaluate<string>('document.activeElement.querySelector("title").textContent'),
      )
    }
    expect(reached.size).toBeGreaterThan(1)
  })

  test.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 390],
    ['dark', 390],
  ] as const)(
    'is accessible and fits the window, in the %s scheme at a width of %d px',
    async (scheme, width) => {
      const page = await network.browser.page({ scheme, width })
      await network.logIn(page, 'topology')
      await routerIn(page, 'router1').click()
      await detailsOf(page).getByText(topology.hosted(2)).waitFor()
      expect(await axeFindings(page)).toEqual([])
      expect(await overflows(page)).toBe(false)
      await page.screenshot({
        path: join(shots, `topology-${scheme}-${width}.png`),
        fullPage: true,
      })
    },
  )
})
