import { appendFileSync } from 'node:fs'
import { once } from 'node:events'
import { Agent, createServer, get } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { readQuickstartPlan } from '../../src/cli/quickstart/plan.ts'
import { texts } from '../../src/console/texts.ts'
import { until } from '../process/support/client.ts'
import { axeFindings, browserMissing, overflows } from './support/console-browser.ts'
import {
  type ConsoleNetwork,
  consoleNetwork,
  management,
  shots,
} from './support/console-network.ts'
import { Operator } from './support/operator.ts'

// Goal: an operator sees the traffic of a service and of a router, regardless of the controller
// that counted it. Method: real requests through two real routers, which report every second
// instead of every minute.

const PAGE_BYTES = 50_000
const page = createServer((_, response) => {
  response.end('x'.repeat(PAGE_BYTES))
})
const agent = new Agent({ keepAlive: false })
afterAll(() => {
  agent.destroy()
  page.close()
})

interface Totals {
  readonly rxBytes: number
  readonly txBytes: number
  readonly circuits: number
  readonly dialFailures: number
  readonly latencyMs: number | null
}

interface Traffic {
  readonly hour: { readonly totals: Totals }
  readonly silentControllers: readonly string[]
}

/** Traffic according to controller k. */
async function trafficOf(k: number, kind: 'services' | 'routers', id: string): Promise<Traffic> {
  const client = await network.cluster.loggedIn(k)
  const { body } = await client.request('GET', `${management}/traffic/${kind}/${id}`)
  return body.data as unknown as Traffic
}

/** Fetches a page through the routers. @returns its number of bytes; null if nothing arrived. */
async function fetchThroughRouters(): Promise<number | null> {
  const [first] = readQuickstartPlan(network.cluster.folder).routers
  return await new Promise((resolve) => {
    const request = get(`http://127.0.0.1:${first?.entryPort}/`, { agent }, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => (bytes += chunk.length))
      response.on('end', () => resolve(bytes))
      response.on('error', () => resolve(null))
    })
    request.on('error', () => resolve(null))
  })
}

/** Waits until a connection is closed, by its end or by an error. */
async function closed(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
}

async function onlineRouters(made: ConsoleNetwork) {
  return await until('both routers are online', async () => {
    const rows = await made.rowsOf('edge-routers', 'true')
    return rows.length === 2 && rows.every((row) => row['isOnline'] === true)
  })
}

const ids = { service: '', entry: '', host: '' }

const network = consoleNetwork(async (made: ConsoleNetwork) => {
  const { cluster } = made
  await cluster.interrupt()
  for (const { configPath } of readQuickstartPlan(cluster.folder).routers) {
    const reports = '\nmetrics:\n  reportInterval: 1s\n  intervalAgeThreshold: 0s\n'
    appendFileSync(configPath, reports)
  }
  await cluster.quickstart()
  await onlineRouters(made)
  page.listen(0, '127.0.0.1')
  await once(page, 'listening')
  ids.entry = (await made.recordOf('edge-routers', 'router1')).id
  ids.host = (await made.recordOf('edge-routers', 'router2')).id
  await made.send('PATCH', `edge-routers/${ids.entry}`, { isTunnelerEnabled: true })
  // The routers of a quickstart have a listener for this service.
  ids.service = await made.create('services', { name: 'demo', encryptionRequired: false })
  const only = { semantic: 'AnyOf', name: 'demo', serviceRoles: [`@${ids.service}`] }
  const identityRoles = [`@${ids.entry}`]
  await made.create('service-policies', { ...only, type: 'Dial', identityRoles })
  await made.create('service-edge-router-policies', { ...only, edgeRouterRoles: ['#all'] })
  const { port } = page.address() as AddressInfo
  const address = `tcp:127.0.0.1:${port}`
  const terminator = { service: ids.service, router: ids.host, binding: 'transport', address }
  await made.create('terminators', terminator)
  await until('a page comes through the routers', async () => {
    return (await fetchThroughRouters()) === PAGE_BYTES
  })
  page.close()
  page.closeAllConnections()
  await until('a dial fails', async () => {
    expect(await fetchThroughRouters()).toBeNull()
    return (await trafficOf(1, 'services', ids.service)).hour.totals.dialFailures > 0
  })
  await until('the routers have reported the bytes', async () => {
    return (await trafficOf(1, 'services', ids.service)).hour.totals.txBytes > PAGE_BYTES
  })
})

describe.skipIf(browserMissing !== null)('The console’s Traffic view', () => {
  test('shows bytes, circuits and failed dials of a service, one click away from the Home page', async () => {
    const shown = await network.open(2)
    const { traffic } = texts
    const top = shown.getByRole('region', { name: traffic.topServices.title })
    const operator = new Operator(shown)
    await operator.click(top.getByRole('link', { name: 'demo', exact: true }))
    await shown.getByRole('heading', { name: traffic.title, exact: true }).waitFor()
    expect(operator.effort).toEqual({ clicks: 1, keys: 0 })
    const { totals } = (await trafficOf(3, 'services', ids.service)).hour
    expect(totals.rxBytes).toBeGreaterThan(30)
    expect(totals.txBytes).toBeGreaterThan(PAGE_BYTES)
    expect(totals.circuits).toBeGreaterThan(0)
    expect(totals.latencyMs).toBeGreaterThan(0)
    const chart = (title: string) => shown.locator('figure.chart', { hasText: title })
    // No circuit is dialed any more, so the page and the other controllers show the same values.
    await chart(traffic.bytes)
      .getByText(/\d kB written/)
      .waitFor()
    await chart(traffic.circuits).getByText(traffic.newCircuits(totals.circuits)).waitFor()
    const failures = traffic.failures(totals.dialFailures)
    await chart(traffic.dialFailures).getByText(failures, { exact: true }).waitFor()
    await chart(traffic.latencyOfService)
      .getByText(/^[\d.,]+ m?s$/)
      .first()
      .waitFor()
    expect(await axeFindings(shown)).toEqual([])
    await shown.screenshot({ path: join(shots, 'traffic-service.png'), fullPage: true })
  })

  test('is the same at every controller', async () => {
    const answers = await Promise.all([1, 2, 3].map((k) => trafficOf(k, 'services', ids.service)))
    const [first] = answers
    expect(answers.map(({ hour, silentControllers }) => [hour.totals, silentControllers])).toEqual(
      answers.map(() => [first?.hour.totals, []]),
    )
  })

  test('can be read by keyboard, by minute and by quarter of an hour, and as a table', async () => {
    const shown = await network.open(1, `services/${ids.service}?tab=traffic`)
    const { traffic } = texts
    const slider = shown.getByRole('slider', { name: traffic.circuits })
    await slider.focus()
    await slider.press('End')
    expect(await slider.getAttribute('aria-valuenow')).toBe('59')
    await slider.press('ArrowLeft')
    expect(await slider.getAttribute('aria-valuetext')).toMatch(
      /^\d\d:\d\d.*: \d+ circuits? so far$/,
    )
    expect(await slider.getAttribute('aria-valuenow')).toBe('58')
    await shown.getByText(traffic.asTable).click()
    expect(await shown.locator('.table tbody tr').count()).toBe(60)
    await shown.getByRole('button', { name: traffic.spanNames.day }).click()
    await expect.poll(() => shown.locator('.table tbody tr').count()).toBe(96)
    expect(await slider.getAttribute('aria-valuemax')).toBe('95')
    expect(await axeFindings(shown)).toEqual([])
    await shown.setViewportSize({ width: 390, height: 800 })
    expect(await overflows(shown)).toBe(false)
  })

  test('shows the bytes of a router and the failed dials to its terminators', async () => {
    const { traffic } = texts
    // Routers measure a link for the first time some seconds after they have reported bytes.
    const { totals } = await until('the router has reported a round trip', async () => {
      const { hour } = await trafficOf(1, 'routers', ids.host)
      return hour.totals.latencyMs === null ? null : hour
    })
    expect(totals.dialFailures).toBeGreaterThan(0)
    const shown = await network.open(1, `edge-routers/${ids.host}`)
    await shown.getByRole('link', { name: texts.record.tabNames.traffic, exact: true }).click()
    const chart = (title: string) => shown.locator('figure.chart', { hasText: title })
    await chart(traffic.bytes)
      .getByText(/kB read, [\d.]+ kB written/)
      .waitFor()
    const failures = traffic.failures(totals.dialFailures)
    await chart(traffic.dialFailures).getByText(failures, { exact: true }).waitFor()
    await chart(traffic.latencyOfRouter)
      .getByText(/^[\d.,]+ m?s$/)
      .first()
      .waitFor()
  })

  test('ends all circuits of a group after a confirmation that names their number, and marks a router that is offline', async () => {
    const { live } = texts
    const held: Socket[] = []
    const server = createTcpServer((socket) => held.push(socket.on('error', () => undefined)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const address = `tcp:127.0.0.1:${port}`
    const terminator = { service: ids.service, router: ids.host, binding: 'transport', address }
    const id = await network.create('terminators', terminator)
    const [first] = readQuickstartPlan(network.cluster.folder).routers
    const clients: Socket[] = []
    try {
      await until('two connections reach the server', async () => {
        if (held.length >= 2) return true
        const socket = connect(first?.entryPort ?? 0, '127.0.0.1')
        clients.push(socket.on('error', () => undefined))
        // The dial fails, and the socket is closed, if it goes to the other terminator.
        const isOver = Promise.race([once(server, 'connection'), closed(socket)])
        socket.write('hello')
        await isOver
        return held.length >= 2
      })
      const shown = await network.open(1, 'live/circuits')
      const row = shown.locator('tbody tr', { hasText: 'demo' })
      await row.getByRole('button', { name: /^\d+ circuits$/ }).waitFor()
      expect(await row.count()).toBe(1)
      expect(await axeFindings(shown)).toEqual([])
      await shown.route('**/edge/management/v1/routers?*', async (route) => {
        const response = await route.fetch()
        const body = (await response.json()) as object
        await route.fulfill({ response, json: { ...body, data: [{ id: ids.host }] } })
      })
      await row.locator('.badge.bad', { hasText: texts.cell.offline }).waitFor()
      await shown.screenshot({ path: join(shots, 'circuits.png') })
      await row.getByRole('button', { name: new RegExp(`^${live.end} \\d`) }).click()
      const dialog = shown.getByRole('dialog')
      await dialog
        .getByRole('heading', { name: /^End the \d+ circuits of router1 to demo/ })
        .waitFor()
      const ended = held.map(closed)
      for (const socket of held) socket.resume()
      await dialog.getByRole('button', { name: new RegExp(`^${live.end} \\d`) }).click()
      await Promise.all(ended)
      await shown.getByText(live.none.circuits).waitFor()
    } finally {
      for (const socket of [...clients, ...held]) socket.destroy()
      server.close()
      await network.send('DELETE', `terminators/${id}`)
    }
  })

  test('names a controller that does not respond, and shows the counts of the others', async () => {
    const shown = await network.open(1, `services/${ids.service}?tab=traffic`)
    await shown.getByRole('heading', { name: texts.traffic.title, exact: true }).waitFor()
    // The counts may be only at the controller that owned the circuits; another one is stopped then.
    let stopped = 3
    try {
      network.cluster.kill(stopped, 'SIGSTOP')
      const beganMs = performance.now()
      const { silentControllers, hour } = await trafficOf(1, 'services', ids.service)
      expect(performance.now() - beganMs).toBeLessThan(8_000)
      expect(silentControllers).toEqual(['ctrl3'])
      if (hour.totals.rxBytes + hour.totals.txBytes === 0) {
        network.cluster.kill(stopped, 'SIGCONT')
        stopped = 2
        network.cluster.kill(stopped, 'SIGSTOP')
      }
      await shown.reload()
      await shown.getByText(texts.live.silent([`ctrl${stopped}`])).waitFor()
      await shown.getByRole('slider', { name: texts.traffic.bytes }).waitFor()
    } finally {
      network.cluster.kill(stopped, 'SIGCONT')
    }
  })
})
