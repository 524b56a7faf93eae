import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'

import type { Client } from '../process/support/client.ts'
import { StockNetwork } from './network.ts'
import { seen, type StockRouter } from './stock-router.ts'

// Two unmodified OpenZiti routers in a cluster of three controllers: they enroll, are shown as
// online by every controller, establish a link, and follow the data model and the controllers.
// `node test/stock/routers.ts --binary PATH`

const { values: options } = parseArgs({ options: { binary: { type: 'string' } } })
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
console.log(execFileSync(binary, ['version'], { encoding: 'utf8' }).trim().split('\n')[0])

await using network = await StockNetwork.start(binary, ['er1', 'er2'])
const { cluster, clients, routers, routerIds: ids } = network
const all = cluster.admin.controllers.map((_, at) => cluster.id(at + 1)).sort()
const [er1 = '', er2 = ''] = ids
for (const [at, client] of clients.entries()) {
  await seen(`both online on ${cluster.id(at + 1)}`, () => network.areOnline(at + 1))
  await seen(`a link between them on ${cluster.id(at + 1)}`, async () => {
    const { body } = await client.request('GET', '/fabric/v1/links')
    const links = body.data as {
      sourceRouter: { id: string }
      destRouter: { id: string }
      state: string
    }[]
    return links.some(
      ({ sourceRouter, destRouter, state }) =>
        [sourceRouter.id, destRouter.id].sort().join() === [er1, er2].sort().join() &&
        state === 'Connected',
    )
  })
}
for (const router of routers) {
  await seen(
    `the endpoints file of ${router.options.name} has all controllers`,
    () => router.endpoints().join() === all.join(),
  )
}
await modelAgrees('as it is')
await fill()
await modelAgrees('after writes')

const [first] = routers as [StockRouter]
const printOf = async (): Promise<unknown> =>
  (await network.detail(1, `edge-routers/${er1}`))['fingerprint']
const before = await printOf()
await first.kill()
first.start('--extend')
await seen(
  'new certificates of er1, asked for over its channel',
  async () => (await printOf()) !== before,
)
for (const k of [1, 2, 3]) await seen(`both online on ctrl${k}`, () => network.areOnline(k))
await first.kill()
first.start()
for (const k of [1, 2, 3]) await seen(`er1 online by them on ctrl${k}`, () => network.areOnline(k))

const leader = await cluster.leader()
cluster.kill(leader)
console.log(`  ${cluster.id(leader)}, which led, is killed`)
const other = (leader % 3) + 1
const asked = clients[other - 1] as Client
await seen('a new leader', async () => (await cluster.leader()) !== leader)
await asked.request('POST', '/edge/management/v1/services', {
  body: { name: 'after the leader', encryptionRequired: true },
})
await modelAgrees('after the leader was killed', other)
cluster.run(leader)
await seen(`both online on ${cluster.id(leader)} again`, () => network.areOnline(leader))
const disabled = await asked.request('PATCH', `/edge/management/v1/edge-routers/${er2}`, {
  body: { disabled: true },
})
if (disabled.status !== 200) throw new Error(`disabling er2: ${disabled.text}`)
await seen('er2 offline once it is disabled, and its link gone', async () => {
  const { isOnline } = await network.detail(other, `edge-routers/${er2}`)
  const links = await network.fabric(other, 'links')
  if (isOnline === false && links.length === 0) return true
  throw new Error(JSON.stringify({ isOnline, links }))
})
console.log('all seen')

/** Creates a record of every kind that routers receive. */
async function fill(): Promise<void> {
  const client = network.client(1)
  const post = network.post.bind(network)
  const service = await post('services', {
    name: 'ledger',
    encryptionRequired: true,
    roleAttributes: ['books'],
  })
  for (let at = 0; at < 20; at += 1) {
    await post('identities', {
      name: `clerk ${at}`,
      type: 'Default',
      isAdmin: false,
      roleAttributes: at % 2 === 0 ? ['clerks'] : [],
    })
  }
  await post('posture-checks', {
    name: 'mac',
    typeId: 'MAC',
    macAddresses: ['00:11:22:33:44:55'],
    roleAttributes: ['safe'],
  })
  await post('posture-checks', {
    name: 'os',
    typeId: 'OS',
    roleAttributes: ['safe'],
    operatingSystems: [{ type: 'Linux', versions: ['>=5.0.0'] }],
  })
  await post('service-policies', {
    name: 'clerks dial',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: ['#clerks'],
    serviceRoles: ['#books'],
    postureCheckRoles: ['#safe'],
  })
  const bound = await post('service-policies', {
    name: 'all bind',
    type: 'Bind',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    serviceRoles: [`@${service}`],
  })
  await client.request('PATCH', `/edge/management/v1/service-policies/${bound}`, {
    body: { identityRoles: ['#clerks'] },
  })
}

/**
 * Expects the data model of each router, according to its own inspection, to equal that of the
 * controller, for every kind and ID.
 */
async function modelAgrees(when: string, k = 1): Promise<void> {
  const client = clients[k - 1] as Client
  await seen(`the data model of both routers agrees, ${when}`, async () => {
    const { body } = await client.request('POST', '/fabric/v1/inspections', {
      body: { appRegex: '.*', requestedValues: ['router-data-model'] },
    })
    const { values } = body as unknown as {
      values: { appId: string; name: string; value: Record<string, Record<string, unknown>> }[]
    }
    // Controllers answer the inspection too, with their number of entries.
    const models = values.filter(
      ({ appId, name }) => name === 'router-data-model' && !/^ctrl\d$/.test(appId),
    )
    if (models.length < routers.length) return false
    for (const { value } of models) {
      const model = (value['model'] ?? value) as Record<string, Record<string, unknown>>
      for (const [kind, path] of [
        ['identities', 'identities'],
        ['services', 'services'],
        ['servicePolicies', 'service-policies'],
        ['postureChecks', 'posture-checks'],
        ['configTypes', 'config-types'],
      ] as const) {
        const listed = await client.request('GET', `/edge/management/v1/${path}?limit=500`)
        const wanted = (listed.body.data as { id: string }[]).map(({ id }) => id).sort()
        const held = Object.keys(model[kind] ?? {}).sort()
        if (held.join() !== wanted.join()) return false
      }
    }
    return true
  })
}
