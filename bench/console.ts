import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'

import { browserMissing, ConsoleBrowser, logIn } from '../test/console/support/console-browser.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { heading, percentile } from './support/report.ts'

// Measures the console in a browser, with three controllers, 10,000 identities and 2,000 services:
// the time from a click on a link of the menu to the first data of the page, and tasks longer than
// 50 ms while lists are scrolled and filtered. Run `make console` before `node bench/console.ts`.

const { values: options } = parseArgs({
  options: {
    identities: { type: 'string', default: '10000' },
    services: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '5' },
  },
})
const rounds = Number(options.rounds)
const MANAGEMENT = '/edge/management/v1'
const CLIENTS = 24

if (browserMissing !== null) {
  console.log(browserMissing)
  process.exit(1)
}

/**
 * Programs for the browser as strings, because this file is compiled without the types of the DOM.
 */
const watchLongTasks = `globalThis.longTasks = []
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) longTasks.push(Math.round(duration))
}).observe({ entryTypes: ['longtask'] })`

/**
 * Clicks a link of the menu. The result is the time until the page shows its title and first data,
 * ms.
 */
const openByMenu = (title: string): string => `new Promise((resolve) => {
  const wanted = ${JSON.stringify(title)}
  const link = [...document.querySelectorAll('nav.nav a')]
    .find(({ textContent }) => textContent.trim() === wanted)
  const from = performance.now()
  const look = () => {
    const isThere = document.querySelector('h1')?.textContent?.startsWith(wanted) === true
    if (isThere && document.querySelector('main [aria-busy="true"]') === null) {
      resolve(Math.round(performance.now() - from))
    } else requestAnimationFrame(look)
  }
  link.click()
  requestAnimationFrame(look)
})`

/** Creates records in parallel, through all controllers. */
async function createMany(count: number, path: string, bodyOf: (k: number) => object) {
  let made = 0
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, at) => {
      const client = await cluster.loggedIn((at % 3) + 1)
      while (made < count) {
        made += 1
        const { status, text } = await client.request('POST', `${MANAGEMENT}/${path}`, {
          body: bodyOf(made),
        })
        // With status 503, the machine is busy and the record may exist.
        if (status !== 201 && status !== 503) throw new Error(text)
      }
    }),
  )
}

async function longTasksDuring(page: Page, work: () => Promise<void>): Promise<number[]> {
  await page.evaluate(watchLongTasks)
  await work()
  return await page.evaluate<number[]>('longTasks')
}

async function scroll(page: Page): Promise<void> {
  await page.mouse.move(640, 500)
  for (let at = 0; at < 60; at += 1) await page.mouse.wheel(0, 900)
  await page.evaluate('scrollTo(0, document.body.scrollHeight)')
  await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' })
}

console.log(heading('The console with many records'))
await using cluster = await TestCluster.start({ hasCalmElections: false })
await createMany(Number(options.services), 'services', (k) => ({
  name: `service ${String(k).padStart(5, '0')}`,
  encryptionRequired: true,
  roleAttributes: [`team-${k % 20}`],
}))
await createMany(Number(options.identities), 'identities', (k) => ({
  name: `laptop ${String(k).padStart(5, '0')}`,
  type: 'Device',
  isAdmin: false,
  roleAttributes: [`team-${k % 20}`, 'laptops'],
}))
await createMany(20, 'service-policies', (k) => ({
  name: `team ${k}`,
  type: 'Dial',
  semantic: 'AnyOf',
  identityRoles: [`#team-${k % 20}`],
  serviceRoles: [`#team-${k % 20}`],
}))

await using browser = await ConsoleBrowser.start()
const page = await browser.page({ width: 1440 })
await logIn(page, `${cluster.admin.controllers[0]}/console/`, cluster.admin)
const links = page.locator('nav.nav a')
const titles = (await links.allTextContents()).map((text) => text.trim())
const times = new Map<string, number[]>(titles.map((title) => [title, []]))
for (let round = 0; round < rounds; round += 1) {
  for (const [title, found] of times) found.push(await page.evaluate<number>(openByMenu(title)))
}
console.log(`ms from a click to the first data, ${rounds} rounds: median, slowest`)
for (const [title, found] of times) {
  console.log(`  ${title.padEnd(28)} ${percentile(found, 0.5)}, ${Math.max(...found)}`)
}

console.log('tasks above 50 ms')
for (const title of ['Identities', 'Services'] as const) {
  await page.evaluate(openByMenu(title))
  const scrolling = await longTasksDuring(page, () => scroll(page))
  console.log(`  ${title}, scrolled: ${scrolling.length} ${scrolling.join()}`)
  await page.evaluate('scrollTo(0, 0)')
  const filtering = await longTasksDuring(page, async () => {
    await page.locator('.filter input').pressSequentially('0999')
    await page.getByText(/\d+ match/).waitFor()
  })
  console.log(`  ${title}, filtered: ${filtering.length} ${filtering.join()}`)
}
const searching = await longTasksDuring(page, async () => {
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog').getByRole('combobox').pressSequentially('laptop 0999')
  await page.getByRole('dialog').getByRole('option').first().waitFor()
})
console.log(`  search: ${searching.length} ${searching.join()}`)
