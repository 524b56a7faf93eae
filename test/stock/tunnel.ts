import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'

import { freePort } from '../support/ports.ts'
import { StockNetwork } from './network.ts'
import { seen } from './stock-router.ts'

// Tunnels in OpenZiti routers: one hosts a page, another one opens a port for it; the test uses no
// OpenZiti client. `node test/stock/tunnel.ts --binary PATH`

const { values: options } = parseArgs({ options: { binary: { type: 'string' } } })
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
const page = 'a page that only the overlay leads to\n'.repeat(4096)
const server = createServer((_request, response) => response.end(page)).listen(0, '127.0.0.1')
await once(server, 'listening')
const port = await freePort()
const url = `http://127.0.0.1:${port}/`
try {
  await using network = await StockNetwork.start(binary, [])
  const hostId = await network.addRouter('tunnel-host', { tunnel: { mode: 'host' } })
  const clientId = await network.addRouter('tunnel-client', {
    tunnel: {
      mode: 'proxy',
      services: [`page:${port}`],
    },
  })
  for (const k of [1, 2, 3]) {
    await seen(`both routers online on ctrl${k}`, () => network.areOnline(k))
  }
  await seen('a link', async () => (await network.fabric(1, 'links')).length > 0)
  await network.post('service-edge-router-policies', {
    name: 'all',
    semantic: 'AnyOf',
    serviceRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  })
  const config = await network.post('configs', {
    name: 'page',
    configTypeId: await hostConfigType(network),
    data: { protocol: 'tcp', address: '127.0.0.1', port: (server.address() as AddressInfo).port },
  })
  const service = await network.post('services', {
    name: 'page',
    encryptionRequired: true,
    configs: [config],
  })
  const policies: string[] = []
  for (const [type, id] of [
    ['Bind', hostId],
    ['Dial', clientId],
  ] as const) {
    policies.push(
      await network.post('service-policies', {
        type,
        name: type,
        semantic: 'AnyOf',
        serviceRoles: [`@${service}`],
        identityRoles: [`@${id}`],
      }),
    )
  }
  for (const k of [1, 2, 3]) {
    await seen(`a terminator of the tunnel on ctrl${k}`, async () => {
      const [only, ...others] = await terminators(network, k)
      return only?.['binding'] === 'tunnel' && others.length === 0
    })
  }
  await seen('the page, through both tunnels', async () => (await fetched()) === page)
  await seen('the circuit is over', async () => {
    const counts = await Promise.all([1, 2, 3].map((k) => network.fabric(k, 'circuits')))
    return counts.every((circuits) => circuits.length === 0)
  })
  const leader = await network.cluster.leader()
  network.cluster.kill(leader)
  console.log(`  ctrl${leader}, which led, is killed`)
  const alive = [1, 2, 3].filter((k) => k !== leader)
  await seen('a new leader', async () => (await network.cluster.leader()) !== leader)
  await seen('the page again', async () => (await fetched()) === page)
  const [k = 1] = alive
  await network.client(k).request('DELETE', `/edge/management/v1/service-policies/${policies[1]}`)
  await seen('no page without the dial policy', async () => (await fetched()) === null)
  await network.client(k).request('DELETE', `/edge/management/v1/service-policies/${policies[0]}`)
  await seen('no terminator without the bind policy', async () => {
    return (await terminators(network, k)).length === 0
  })
  console.log('all seen')
} finally {
  server.close()
}

async function hostConfigType(network: StockNetwork): Promise<string> {
  const query = new URLSearchParams({ filter: 'name="host.v1"' })
  const { body } = await network
    .client(1)
    .request('GET', `/edge/management/v1/config-types?${query}`)
  return (body.data as { id: string }[])[0]?.id ?? ''
}

async function terminators(network: StockNetwork, k: number): Promise<Record<string, unknown>[]> {
  const { body } = await network.client(k).request('GET', '/edge/management/v1/terminators')
  return body.data as Record<string, unknown>[]
}

/** The fetched page; null if no answer arrives. */
async function fetched(): Promise<string | null> {
  try {
    const response = await fetch(url, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(10_000),
    })
    return await response.text()
  } catch {
    return null
  }
}
