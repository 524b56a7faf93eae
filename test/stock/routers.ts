import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import type { Client } from '../process/support/client.ts'
import { TestCluster } from '../process/support/cluster.ts'
import { freePort } from '../support/ports.ts'
import { seen, StockRouter } from './stock-router.ts'

// Two routers of the public family, as they are, at a cluster of three: they enroll, show online everywhere, form a link,
// follow the data model and the controllers. `node test/stock/routers.ts --binary PATH`

const { values: options } = parseArgs({ options: { binary: { type: 'string' } } })
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
console.log(execFileSync(binary, ['version'], { encoding: 'utf8' }).trim().split('\n')[0])

await using cluster = await TestCluster.start()
const clients = [await cluster.loggedIn(1), await cluster.loggedIn(2), await cluster.loggedIn(3)]
const all = cluster.admin.controllers.map((_, at) => cluster.id(at + 1)).sort()
const routers: StockRouter[] = []
try {
  const ids: string[] = []
  for (const name of ['er1', 'er2']) {
    const { id, jwt } = await created(name)
    const [endpoint = ''] = endpointsIn(jwt)
    const folder = join(cluster.folder, name)
    const ports = { linkPort: await freePort(), edgePort: await freePort() }
    const router = new StockRouter({ binary, folder, name, endpoint, ...ports })
    await router.enroll(jwt)
    router.start()
    routers.push(router)
    ids.push(id)
    console.log(`  ${name} has enrolled at ${endpoint}`)
  }
  const [er1 = '', er2 = ''] = ids
  for (const [at, client] of clients.entries()) {
    await seen(`both online on ${cluster.id(at + 1)}`, async () => {
      const shown = await Promise.all(ids.map((id) => detail(client, `/edge-routers/${id}`)))
      return shown.every(({ isOnline }) => isOnline === true)
    })
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
  await seen(`both online on ${cluster.id(leader)} again`, async () => {
    const client = clients[leader - 1] as Client
    const shown = await Promise.all(ids.map((id) => detail(client, `/edge-routers/${id}`)))
    return shown.every(({ isOnline }) => isOnline === true)
  })
  await asked.request('PATCH', `/edge/management/v1/edge-routers/${er2}`, {
    body: { disabled: true },
  })
  await seen('er2 offline once it is disabled, and its link gone', async () => {
    const { isOnline } = await detail(asked, `/edge-routers/${er2}`)
    const { body } = await asked.request('GET', '/fabric/v1/links')
    return isOnline === false && (body.data as unknown[]).length === 0
  })
  console.log('all seen')
} finally {
  await Promise.all(routers.map((router) => router.kill()))
}

async function created(name: string): Promise<{ readonly id: string; readonly jwt: string }> {
  const [client] = clients as [Client]
  const { status, body } = await client.request('POST', '/edge/management/v1/edge-routers', {
    body: { name },
  })
  if (status !== 201) throw new Error(`create ${name}: ${status}`)
  const { id } = body.data as { id: string }
  const { enrollmentJwt } = await detail(client, `/edge-routers/${id}`)
  return { id, jwt: String(enrollmentJwt) }
}

async function detail(client: Client, path: string): Promise<Record<string, unknown>> {
  const { body } = await client.request('GET', `/edge/management/v1${path}`)
  return body.data as Record<string, unknown>
}

function endpointsIn(jwt: string): string[] {
  const claims = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()) as {
    ctrls: string[]
  }
  return claims.ctrls
}

/** Something of every kind that routers are told of. */
async function fill(): Promise<void> {
  const [client] = clients as [Client]
  const post = async (path: string, body: Record<string, unknown>): Promise<string> => {
    const answer = await client.request('POST', `/edge/management/v1/${path}`, { body })
    if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return (answer.body.data as { id: string }).id
  }
  const service = await post('services', {
    ...{ name: 'ledger', encryptionRequired: true, roleAttributes: ['books'] },
  })
  for (let at = 0; at < 20; at += 1) {
    await post('identities', {
      ...{ name: `clerk ${at}`, type: 'Default', isAdmin: false },
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
    ...{ name: 'os', typeId: 'OS', roleAttributes: ['safe'] },
    operatingSystems: [{ type: 'Linux', versions: ['>=5.0.0'] }],
  })
  await post('service-policies', {
    ...{ name: 'clerks dial', type: 'Dial', semantic: 'AnyOf' },
    ...{ identityRoles: ['#clerks'], serviceRoles: ['#books'], postureCheckRoles: ['#safe'] },
  })
  const bound = await post('service-policies', {
    ...{ name: 'all bind', type: 'Bind', semantic: 'AnyOf' },
    ...{ identityRoles: ['#all'], serviceRoles: [`@${service}`] },
  })
  await client.request('PATCH', `/edge/management/v1/service-policies/${bound}`, {
    body: { identityRoles: ['#clerks'] },
  })
}

/** The model of each router, by its own inspection, is that of the controller: kind by kind, id by id. */
async function modelAgrees(when: string, k = 1): Promise<void> {
  const client = clients[k - 1] as Client
  await seen(`the data model of both routers agrees, ${when}`, async () => {
    const { body } = await client.request('POST', '/fabric/v1/inspections', {
      body: { appRegex: '.*', requestedValues: ['router-data-model'] },
    })
    const { values } = body as unknown as {
      values: { appId: string; name: string; value: Record<string, Record<string, unknown>> }[]
    }
    const models = values.filter(({ name }) => name === 'router-data-model')
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
