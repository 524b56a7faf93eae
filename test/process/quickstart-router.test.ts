import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/ports.ts'
import { type Client, until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: the router beside a quickstart is there when it says that it is ready, carries circuits, and ends with it.

let cluster: TestCluster
let proxyPort = 0
beforeAll(async () => {
  cluster = await TestCluster.start({ nodes: 1, routers: 1 })
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

const file = (name: string): string => join(cluster.folder, 'router1', name)
const read = (name: string): string => readFileSync(file(name), 'utf8')
const pid = (): number => Number(read('pid').trim())

async function expectOnline(): Promise<void> {
  const client = await cluster.loggedIn(1)
  await until('the router is online', async () => {
    const { body } = await client.request('GET', '/edge/management/v1/edge-routers')
    const routers = body.data as { name: string; isOnline: boolean; isVerified: boolean }[]
    return (
      routers.length === 1 &&
      routers.every((one) => one.name === 'router1' && one.isOnline && one.isVerified)
    )
  })
}

test('a router is enrolled and online, and when it is killed the quickstart tells how to start it again', async () => {
  await expectOnline()
  process.kill(pid(), 'SIGKILL')
  await until('the notice', () =>
    Promise.resolve(
      /router1 was killed[\s\S]*router run \S*router1\/config\.yml/.test(cluster.output),
    ),
  )
})

test('a quickstart that is run again starts its router by the identity that it has, and by its changed configuration', async () => {
  const before = read('router1.cert')
  await cluster.interrupt()
  proxyPort = await freePort()
  appendFileSync(
    file('config.yml'),
    `
dialers:
  - binding: transport
listeners:
  - binding: proxy
    address: tcp:127.0.0.1:${proxyPort}
    advertise: 127.0.0.1:${proxyPort}
    service: web
`,
  )
  await cluster.quickstart()
  await expectOnline()
  expect(read('router1.cert')).toBe(before)
})

async function make(client: Client, kind: string, body: object): Promise<string> {
  const answer = await client.request('POST', `/edge/management/v1/${kind}`, { body })
  if (answer.status !== 201) throw new Error(`${kind} answered ${answer.status}: ${answer.text}`)
  return (answer.body.data as { id: string }).id
}

/** A service that the router hosts at the address, and that its own listeners may dial. */
async function hostService(name: string, address: string): Promise<void> {
  const client = await cluster.loggedIn(1)
  const { body } = await client.request('GET', '/edge/management/v1/edge-routers')
  const [{ id: router } = { id: '' }] = body.data as { id: string }[]
  await client.request('PATCH', `/edge/management/v1/edge-routers/${router}`, {
    body: { isTunnelerEnabled: true },
  })
  const service = await make(client, 'services', { name, encryptionRequired: false })
  await make(client, 'terminators', { service, router, binding: 'transport', address })
  const serviceRoles = [`@${service}`]
  await make(client, 'service-edge-router-policies', {
    name: `${name} at routers`,
    semantic: 'AnyOf',
    serviceRoles,
    edgeRouterRoles: [`@${router}`],
  })
  await make(client, 'service-policies', {
    name: `dial ${name}`,
    type: 'Dial',
    semantic: 'AnyOf',
    serviceRoles,
    identityRoles: [`@${router}`],
  })
}

test('a page is fetched through the router, by the terminator and the policy that an administrator has made', async () => {
  const server = createServer((request, response) => response.end(`page ${request.url}`))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  await hostService('web', `tcp:127.0.0.1:${(server.address() as AddressInfo).port}`)
  const page = await until('the page', async () => {
    const url = `http://127.0.0.1:${proxyPort}/a`
    const answer = await fetch(url, { headers: { connection: 'close' } })
    return answer.text()
  })
  expect(page).toBe('page /a')
  await new Promise<void>((done) => server.close(() => done()))
})

test('a quickstart ends its router at ^C', async () => {
  const running = pid()
  expect(await cluster.interrupt()).toBe(0)
  expect(() => process.kill(running, 0)).toThrow(/ESRCH/)
  expect(existsSync(file('pid'))).toBe(false)
})
