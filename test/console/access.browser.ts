import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'

import { readQuickstartPlan } from '../../src/cli/quickstart/plan.ts'
import { texts } from '../../src/console/texts.ts'
import { until } from '../process/support/client.ts'
import { browserMissing } from './support/console-browser.ts'
import { type ConsoleNetwork, consoleNetwork, management } from './support/console-network.ts'

// Goal: the Access page never says that an identity reaches a service if its client cannot connect
// to any router.

const ids = { identity: '', service: '' }

interface RouterConfig {
  readonly listeners: readonly { readonly binding: string }[]
}

/** Starts the routers again without a listener for clients. */
async function removeEdgeListeners({ cluster }: ConsoleNetwork): Promise<void> {
  await cluster.interrupt()
  for (const { configPath } of readQuickstartPlan(cluster.folder).routers) {
    const config = parse(readFileSync(configPath, 'utf8')) as RouterConfig
    const listeners = config.listeners.filter(({ binding }) => binding !== 'edge')
    expect(listeners.length).toBeLessThan(config.listeners.length)
    writeFileSync(configPath, stringify({ ...config, listeners }))
  }
  await cluster.quickstart()
}

const network = consoleNetwork(async (made) => {
  await removeEdgeListeners(made)
  const laptop = { name: 'laptop', type: 'Device', isAdmin: false, roleAttributes: ['staff'] }
  ids.identity = await made.create('identities', laptop)
  ids.service = await made.create('services', { name: 'wiki', encryptionRequired: true })
  const account = { username: 'laptop', password: 'a long enough password' }
  await made.create('authenticators', { method: 'updb', identityId: ids.identity, ...account })
  const policy = { semantic: 'AnyOf', name: 'all', edgeRouterRoles: ['#all'] }
  await made.create('edge-router-policies', { ...policy, identityRoles: ['#all'] })
  await made.create('service-edge-router-policies', { ...policy, serviceRoles: ['#all'] })
  for (const type of ['Dial', 'Bind']) {
    await made.create('service-policies', {
      name: `wiki ${type}`,
      type,
      semantic: 'AnyOf',
      identityRoles: ['#staff'],
      serviceRoles: [`@${ids.service}`],
    })
  }
  const { id: router } = await made.recordOf('edge-routers', 'router1')
  const terminator = { service: ids.service, router, binding: 'transport' }
  await made.create('terminators', { ...terminator, address: 'tcp:127.0.0.1:1' })
  await until('both routers are online', async () => {
    const rows = await made.rowsOf('edge-routers', 'true')
    return rows.length === 2 && rows.every((row) => row['isOnline'] === true)
  })
})

describe.skipIf(browserMissing !== null)('The access page of the console', () => {
  test('shows that an identity cannot reach a service if none of their common online routers has an edge listener', async () => {
    const page = await network.open(1, `access?identity=${ids.identity}&service=${ids.service}`)
    await page.getByRole('heading', { name: 'laptop cannot reach wiki' }).waitFor()
    await page.getByText('No edge router that they have in common and that is online').waitFor()
    await page.getByText(texts.access.commonOf(2, 2)).waitFor()
    for (const side of ['dial', 'bind'] as const) {
      const client = await network.cluster.loggedIn(1)
      const query = `identity=${ids.identity}&service=${ids.service}`
      const { body } = await client.request('GET', `${management}/access/explain?${query}`)
      const [row] = body.data as unknown as readonly Record<typeof side, object>[]
      expect(row?.[side]).toMatchObject({
        isGranted: true,
        isReachable: false,
        missing: [{ code: 'NO_EDGE_LISTENER' }],
      })
    }
  })
})
