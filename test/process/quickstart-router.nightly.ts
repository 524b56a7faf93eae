import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { flotilla } from '../support/program.ts'
import { until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: the routers of a quickstart run when quickstart prints that it is ready, carry traffic, and
// exit with it.

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start({ nodes: 1, routers: 2 })
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

const file = (name: string): string => join(cluster.folder, 'router1', name)
const read = (name: string): string => readFileSync(file(name), 'utf8')
const pid = (): number => Number(read('pid').trim())

async function expectOnline(): Promise<void> {
  const client = await cluster.loggedIn(1)
  await until('the routers are online', async () => {
    const { body } = await client.request('GET', '/edge/management/v1/edge-routers')
    const routers = body.data as { name: string; isOnline: boolean; isVerified: boolean }[]
    return (
      routers.length === 2 && routers.every(({ isOnline, isVerified }) => isOnline && isVerified)
    )
  })
}

/** Whether the tunnel of router1 is enabled; with `value`, sets that first. */
async function tunnelOfFirst(value?: boolean): Promise<unknown> {
  const client = await cluster.loggedIn(1)
  const { body } = await client.request('GET', '/edge/management/v1/edge-routers')
  const routers = body.data as { id: string; name: string; isTunnelerEnabled: boolean }[]
  const router = routers.find(({ name }) => name === 'router1')
  if (value === undefined) return router?.isTunnelerEnabled
  const change = { body: { isTunnelerEnabled: value } }
  await client.request('PATCH', `/edge/management/v1/edge-routers/${router?.id}`, change)
  return value
}

test('the demo fetches a page through both routers, and deletes its records afterwards', async () => {
  await expectOnline()
  const hadTunnel = await tunnelOfFirst(false)
  const { stdout } = await promisify(execFile)(flotilla, ['demo', '--dir', cluster.folder])
  expect(stdout).toContain('came through the overlay')
  expect(stdout).toMatch(/ demo +router1 > router2$/m)
  const client = await cluster.loggedIn(1)
  for (const kind of ['services', 'terminators', 'service-policies']) {
    const { body } = await client.request('GET', `/edge/management/v1/${kind}`)
    const names = (body.data as { name?: string }[]).map(({ name }) => name)
    expect(names, kind).not.toContain('demo')
  }
  expect(await tunnelOfFirst()).toBe(hadTunnel)
})

test('commands of the program list the link between both routers, inspect the routers and report health', async () => {
  const env = { ...process.env, XDG_CONFIG_HOME: cluster.dir }
  const out = async (...words: string[]): Promise<string> =>
    (await promisify(execFile)(flotilla, words, { env })).stdout
  const password = join(cluster.dir, 'password')
  writeFileSync(password, cluster.admin.password, { mode: 0o600 })
  const url = `https://127.0.0.1:${cluster.port}`
  const ca = join(cluster.folder, 'ca.pem')
  await out('login', url, '--user', 'admin', '--password-file', password, '--ca', ca)
  await until('the link is there', async () => (await out('list', 'links', '-o', 'name')) !== '')
  const fields = 'id,sourceRouter,destRouter,state,down'
  const [link] = JSON.parse(await out('list', 'links', '--fields', fields, '-o', 'json')) as [
    { id: string; sourceRouter: { name: string }; destRouter: { name: string } },
  ]
  expect(link).toMatchObject({ state: 'Connected', down: false })
  expect([link.sourceRouter.name, link.destRouter.name].sort()).toEqual(['router1', 'router2'])
  expect(await out('update', 'link', link.id, 'staticCost=7')).toBe(`updated link ${link.id}\n`)
  expect(await out('get', 'link', link.id)).toMatch(/^staticCost: 7$/m)
  expect(await out('list', 'circuits')).toMatch(/^id +service +clientId +path +createdAt$/m)
  expect(await out('list', 'er')).toMatch(/^router1 +\S+ +yes +yes +public /m)
  const inspected = await out('inspect', '^(ctrl1|router1)$', 'links', 'runtime', '-o', 'json')
  const { errors, values } = JSON.parse(inspected) as {
    errors: string[]
    values: { appId: string; name: string; value: { links?: { id: string }[] } }[]
  }
  expect([errors, values.map(({ name }) => name).sort()]).toEqual([[], ['links', 'runtime']])
  expect(values.find(({ name }) => name === 'runtime')?.appId).toBe('ctrl1')
  const { value } = values.find(({ name }) => name === 'links') ?? {}
  expect(value?.links?.map(({ id }) => id)).toEqual([link.id])
  expect(await out('cluster', 'health')).toMatch(
    /^OK: 1 of 1 controllers answer, leader ctrl1, .* \| controllers=1 answering=1 tolerance=0 alarms=0$/m,
  )
})

test('the demo leaves a router’s tunneler enabled if a user has enabled it', async () => {
  await tunnelOfFirst(true)
  await promisify(execFile)(flotilla, ['demo', '--dir', cluster.folder])
  expect(await tunnelOfFirst()).toBe(true)
})

test('the demo fails and does not delete a user’s service that has the same name as the demo service', async () => {
  const client = await cluster.loggedIn(1)
  const body = { name: 'demo', encryptionRequired: false }
  const made = await client.request('POST', '/edge/management/v1/services', { body })
  expect(made.status).toBe(201)
  await expect(
    promisify(execFile)(flotilla, ['demo', '--dir', cluster.folder]),
  ).rejects.toMatchObject({ code: 1 })
  const { id } = made.body.data as { id: string }
  const found = await client.request('GET', `/edge/management/v1/services/${id}`)
  expect(found.status).toBe(200)
})

test('the quickstart prints the command that starts a killed router again', async () => {
  process.kill(pid(), 'SIGKILL')
  await until('the notice', () =>
    Promise.resolve(
      /router1 was killed[\s\S]*router run \S*router1\/config\.yml/.test(cluster.output),
    ),
  )
})

test('a second quickstart in the folder starts its router with the existing identity, and ^C stops both', async () => {
  const before = read('router1.cert')
  await cluster.interrupt()
  await cluster.quickstart()
  await expectOnline()
  expect(read('router1.cert')).toBe(before)
  const running = pid()
  expect(await cluster.interrupt()).toBe(0)
  expect(() => process.kill(running, 0)).toThrow(/ESRCH/)
  expect(existsSync(file('pid'))).toBe(false)
})
