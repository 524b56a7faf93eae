import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readEndpoints } from '../../src/router/controllers/endpoints-file.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { freePort } from '../support/ports.ts'
import { EventTap } from '../events/tap.ts'
import { Client, until } from './support/client.ts'
import { flotilla } from './support/cluster.ts'
import { expectMembers, Fleet } from './support/fleet.ts'

// Goal: our router finds its cluster even if single controllers fail, and every controller shows it
// as online. Method: three real controllers and one real router; each test continues where the
// previous one ended.

let fleet: Fleet
let folder: string
let routerId: string
let healthPort: number
let linkPort: number
let edgePort: number
let router: ChildProcess | null = null
let output = ''

beforeAll(async () => {
  fleet = await Fleet.create(3)
  fleet.hasOnePort = true
  await fleet.init()
  for (const k of [2, 3]) await fleet.join(k, 1)
  folder = join(fleet.dir, 'router')
  mkdirSync(folder)
  healthPort = await freePort()
  linkPort = await freePort()
  edgePort = await freePort()
})
afterAll(async () => {
  await stopRouter()
  await fleet[Symbol.asyncDispose]()
})

const path = (name: string): string => join(folder, name)

function configure(endpoint: string): void {
  writeFileSync(
    path('router.yml'),
    `v: 3
identity: {cert: router.cert, server_cert: router.server.cert, key: router.key, ca: router.ca}
ctrl: {endpoint: "${endpoint}", startupTimeout: 60s}
csr: {organization: Test, sans: {dns: [router.test], ip: [127.0.0.1]}}
edge: {}
link: ${linksAt(linkPort)}
listeners: [{binding: edge, bind: "tls:127.0.0.1:${edgePort}", advertise: "router.test:3022"}]
healthChecks: {ctrlPingCheck: {interval: 200ms, initialDelay: 0s}, linkCheck: {initialDelay: 0s, interval: 200ms}}
web: [{name: health, bindPoints: [{interface: "127.0.0.1:${healthPort}", address: "127.0.0.1:${healthPort}"}], apis: [{binding: health-checks}, {binding: metrics}]}]
`,
  )
}

function linksAt(port: number): string {
  const listener = `{binding: transport, bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"}`
  return `{listeners: [${listener}], dialers: [{binding: transport, healthyDialBackoff: {minRetryInterval: 100ms}}]}`
}

// Routers and clients of the API use one port.
const endpointOf = (k: number): string => `tls:127.0.0.1:${fleet.routerPort(k)}`

function startRouter(...more: string[]): void {
  const child = spawn(flotilla, ['router', 'run', path('router.yml'), ...more], { env: fleet.env })
  output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')))
  }
  router = child
}

async function stopRouter(): Promise<number | null> {
  const child = router
  if (child === null || child.exitCode !== null) return child?.exitCode ?? null
  const ended = new Promise<number | null>((done) => child.once('exit', done))
  child.kill('SIGTERM')
  return await ended
}

/** Expects these controllers to show the router as online. */
async function expectOnline(ks: readonly number[]): Promise<void> {
  const begunMs = performance.now()
  const clients = await Promise.all(ks.map((k) => fleet.loggedIn(k)))
  try {
    await until(`the router is online on ${ks.join(', ')}`, async () => {
      const shown = await Promise.all(clients.map((client) => shownBy(client)))
      return shown.every((one) => one['isOnline'] === true)
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${output}\n${fleet.logs()}`)
    })
  } finally {
    for (const client of clients) client.close()
  }
  console.log(`online on ${ks.join(', ')} after ${Math.round(performance.now() - begunMs)} ms`)
}

async function shownBy(client: Client): Promise<Readonly<Record<string, unknown>>> {
  const answer = await client.request('GET', `/edge/management/v1/edge-routers/${routerId}`)
  return answer.body.data as Readonly<Record<string, unknown>>
}

/** Waits until the endpoints file lists exactly these members, each once. */
async function expectEndpoints(ks: readonly number[]): Promise<void> {
  const wanted = ks.map((k) => ({ id: `ctrl${k}`, addresses: [endpointOf(k)] }))
  const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1)
  await until(
    `the endpoints file names ${ks.join(', ')}`,
    () => {
      const read = readEndpoints(path('endpoints.yml'))
      const controllers = read.kind === 'known' ? read.known.controllers : []
      const found = controllers.map(({ id, addresses }) => ({ id, addresses })).sort(byId)
      if (JSON.stringify(found) === JSON.stringify(wanted)) return Promise.resolve(true)
      throw new Error(`${JSON.stringify(read)}\n${output}`)
    },
    60_000,
  )
}

async function connectedTo(k: number): Promise<void> {
  await until(
    `the router says that it is connected to ctrl${k}`,
    () => Promise.resolve(new RegExp(`"ctrl${k}".*connected to controller`).test(output)),
    30_000,
  )
}

test('a router enrolls once with its token, into files that only its owner can read', async () => {
  const admin = await fleet.loggedIn(1)
  const made = await admin.request('POST', '/edge/management/v1/edge-routers', {
    body: { name: 'gate' },
  })
  routerId = String((made.body.data as { id: string }).id)
  const { enrollmentJwt } = await shownBy(admin)
  admin.close()
  writeFileSync(path('router.jwt'), String(enrollmentJwt))
  configure(endpointOf(1))
  const enroll = ['router', 'enroll', path('router.yml'), '--jwt', path('router.jwt')]
  const done = await fleet.cli(enroll)
  expect(done.code, done.stdout + done.stderr).toBe(0)
  expect(statSync(path('router.key')).mode & 0o777).toBe(0o600)
  expect(statSync(path('endpoints.yml')).mode & 0o777).toBe(0o600)
  const [leaf] = parseCertificates(readFileSync(path('router.cert'), 'utf8'))
  expect(leaf.commonName).toBe(routerId)
  const [server] = parseCertificates(readFileSync(path('router.server.cert'), 'utf8'))
  expect([server.dnsNames, server.ipAddresses]).toEqual([['router.test'], ['127.0.0.1']])

  const again = await fleet.cli(enroll)
  expect(again.code).toBe(1)
  expect(again.stderr).toMatch(/already exists.*--force/)
  const forced = await fleet.cli([...enroll, '--force'])
  expect(forced.code).toBe(3)
  expect(forced.stderr).toContain('the token was already used')
  expect(parseCertificates(readFileSync(path('router.cert'), 'utf8'))[0].sha1).toBe(leaf.sha1)
})

test.each([
  ['health checks', () => healthPort],
  ['links', () => linkPort],
  ['clients', () => edgePort],
])('a router exits with code 1 when its port for %s is in use', async (_what, portOf) => {
  const port = portOf()
  const other = createServer().listen(port, '127.0.0.1')
  await once(other, 'listening')
  try {
    startRouter()
    const child = router
    const [code] = (await once(child as ChildProcess, 'exit', {
      signal: AbortSignal.timeout(30_000),
    })) as [number | null]
    expect([code, output]).toEqual([1, expect.stringMatching(new RegExp(`${port}.*in use`, 's'))])
  } finally {
    other.close()
    // A router that did not exit might ignore SIGTERM as well.
    router?.kill('SIGKILL')
    router = null
  }
})

test('a router is shown as online on every controller, and stores exactly the members of the cluster', async () => {
  startRouter()
  // A controller shows a router as online while any controller has a connection to it, so this also
  // checks the router's own list of connections.
  await Promise.all([expectOnline([1, 2, 3]), ...[1, 2, 3].map((k) => connectedTo(k))])
  await expectEndpoints([1, 2, 3])
  expect(output).toContain('listening for clients')
  const second = await fleet.cli(['router', 'run', path('router.yml')])
  expect(second.code).toBe(1)
  expect(second.stderr).toMatch(/a router with the configuration .*router\.yml is already running/)
})

test('a router answers the health-checks API', async () => {
  const client = new Client(`https://127.0.0.1:${healthPort}`, path('router.ca'))
  await until('all checks have run', async () => {
    const { status, body } = await client.request('GET', '/health-checks')
    return status === 200 && (body.data as { healthy: boolean }).healthy
  })
  client.close()
})

test('a client with a certificate that flotilla pki issue issued can read the metrics of a router', async () => {
  const out = join(fleet.dir, 'prometheus.pem')
  const words = ['pki', 'issue', '--config', fleet.config(1), '--name', 'prometheus', '--out', out]
  expect((await fleet.cli(words)).code).toBe(0)
  const shown = { cert: readFileSync(out), key: readFileSync(`${out}.key`) }
  const where = { host: '127.0.0.1', port: healthPort, path: '/metrics', agent: false as const }
  const asked = get({ ...where, ...shown, ca: readFileSync(path('router.ca')) })
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of answer) body += String(chunk)
  expect([answer.statusCode, body]).toEqual([
    200,
    expect.stringMatching(/^flotilla_router_controllers_connected 3$/m),
  ])
})

test('two Flotilla routers have one link, which every controller shows and whose events a controller publishes', async () => {
  const name = 'gate 2'
  const admin = await fleet.loggedIn(2)
  const made = await admin.request('POST', '/edge/management/v1/edge-routers', { body: { name } })
  const { id } = made.body.data as { id: string }
  const shown = await admin.request('GET', `/edge/management/v1/edge-routers/${id}`)
  const at = (file: string): string => join(fleet.dir, 'router2', file)
  mkdirSync(join(fleet.dir, 'router2'))
  writeFileSync(at('r.jwt'), String((shown.body.data as { enrollmentJwt: string }).enrollmentJwt))
  writeFileSync(
    at('r.yml'),
    `v: 3
identity: {cert: r.cert, server_cert: r.server.cert, key: r.key, ca: r.ca}
ctrl: {endpoint: "${endpointOf(2)}"}
csr: {sans: {ip: [127.0.0.1]}}
link: ${linksAt(await freePort())}
`,
  )
  const enrolled = await fleet.cli(['router', 'enroll', at('r.yml'), '--jwt', at('r.jwt')])
  expect(enrolled.code, enrolled.stderr).toBe(0)
  const child = spawn(flotilla, ['router', 'run', at('r.yml')], { env: fleet.env, stdio: 'ignore' })
  const events = await EventTap.open(
    `${fleet.url(2)}/fabric/v1/events?namespaces=link`,
    { 'net-session': admin.token ?? '' },
    readFileSync(path('router.ca'), 'utf8'),
  )
  try {
    for (const k of [1, 2, 3]) {
      const client = await fleet.loggedIn(k)
      await until(`ctrl${k} shows the link`, async () => {
        const { body } = await client.request('GET', '/fabric/v1/links')
        const links = body.data as { sourceRouter: { id: string }; destRouter: { id: string } }[]
        const ends = links.map((link) => [link.sourceRouter.id, link.destRouter.id].sort().join())
        return ends.length === 1 && ends[0] === [routerId, id].sort().join()
      }).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${output}`)
      })
      client.close()
    }
  } finally {
    const ended = new Promise((done) => child.once('exit', done))
    child.kill('SIGTERM')
    await ended
  }
  // The events of ctrl2: the router connected and disconnected.
  const types = (): unknown[] => events.events.map((one) => one['event_type'])
  await until('ctrl2 tells of the link', () => Promise.resolve(types().includes('fault')))
  expect(types()[0]).toMatch(/^routerLink(New|DisconnectedDest)$/)
  const ends = events.events.map((one) =>
    [one['src_router_id'], one['dst_router_id']].sort().join(),
  )
  expect(new Set(ends)).toEqual(new Set([[routerId, id].sort().join()]))
  events.close()
  admin.close()
})

test('a router stays online on the other controllers while the leader is killed, and reconnects to the restarted controller', async () => {
  const leader = await fleet.leader(1)
  await fleet.stop(leader, 'SIGKILL')
  const others = [1, 2, 3].filter((k) => k !== leader)
  await expectOnline(others)
  await expectEndpoints([1, 2, 3])
  output = ''
  await fleet.start(leader)
  await connectedTo(leader)
  await expectEndpoints([1, 2, 3])
})

test('a router renews its certificates, and controllers accept the new ones', async () => {
  const before = parseCertificates(readFileSync(path('router.cert'), 'utf8'))[0].sha1
  expect(await stopRouter()).toBe(0)
  startRouter('--extend')
  await until('the certificates are extended', () =>
    Promise.resolve(/certificates extended/.test(output)),
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${output}`)
  })
  const after = parseCertificates(readFileSync(path('router.cert'), 'utf8'))[0].sha1
  expect(after).not.toBe(before)
  await expectOnline([1, 2, 3])
})

/** Queries every controller, after each of them has closed its channel. */
async function expectOffline(ks: readonly number[]): Promise<void> {
  const clients = await Promise.all(ks.map((k) => fleet.loggedIn(k)))
  try {
    await until('the router is offline everywhere', async () => {
      const shown = await Promise.all(clients.map((client) => shownBy(client)))
      return shown.every((one) => one['isOnline'] === false)
    })
  } finally {
    for (const client of clients) client.close()
  }
}

test('a router is disconnected from all controllers when it must enroll again, and is online after it has enrolled', async () => {
  const before = parseCertificates(readFileSync(path('router.cert'), 'utf8'))[0].sha1
  const admin = await fleet.loggedIn(2)
  output = ''
  const at = `/edge/management/v1/edge-routers/${routerId}`
  expect((await admin.request('POST', `${at}/re-enroll`)).status).toBe(200)
  await expectOffline([1, 2, 3])
  await until('its old certificate is refused', () =>
    Promise.resolve(/cannot reach a controller/.test(output)),
  )
  expect(await stopRouter()).toBe(0)
  const { enrollmentJwt, isVerified } = await shownBy(admin)
  expect(isVerified).toBe(false)
  admin.close()
  writeFileSync(path('router.jwt'), String(enrollmentJwt))
  const enroll = ['router', 'enroll', path('router.yml'), '--jwt', path('router.jwt'), '--force']
  const done = await fleet.cli(enroll)
  expect(done.code, done.stdout + done.stderr).toBe(0)
  expect(parseCertificates(readFileSync(path('router.cert'), 'utf8'))[0].sha1).not.toBe(before)
  startRouter()
  await expectOnline([1, 2, 3])
})

test('when a controller leaves the cluster, a router removes it from its list; all controllers refuse a router that was deleted', async () => {
  const leader = await fleet.leader(1)
  const removed = leader === 3 ? 2 : 3
  const left = [1, 2, 3].filter((k) => k !== removed)
  await fleet.change(1, 'remove', `ctrl${removed}`)
  await fleet.stop(removed)
  await expectEndpoints(left)
  await expectOnline(left)
  // All processes stop, and the configuration names only a removed controller: the router can find
  // the cluster only through the endpoints file.
  expect(await stopRouter()).toBe(0)
  await Promise.all(left.map((k) => fleet.stop(k)))
  configure('tls:127.0.0.1:1')
  startRouter()
  await Promise.all(left.map((k) => fleet.start(k)))
  await expectMembers(fleet, left)
  await expectOnline(left)
  await expectEndpoints(left)
  expect(await stopRouter()).toBe(0)
  expect(output).toContain('router stopped')

  // The router is deleted through one controller, and all controllers refuse it.
  startRouter()
  await expectOnline(left)
  await Promise.all(left.map((k) => connectedTo(k)))
  const admin = await fleet.loggedIn(left[0] ?? 1)
  output = ''
  const gone = await admin.request('DELETE', `/edge/management/v1/edge-routers/${routerId}`)
  expect(gone.status).toBe(200)
  await until('every channel is closed, and it is refused', () => {
    const closed = left.filter((k) =>
      new RegExp(`"ctrl${k}".*disconnected from controller`).test(output),
    )
    return Promise.resolve(
      closed.length === left.length && /cannot reach a controller/.test(output),
    )
  })
  admin.close()
  expect(await stopRouter()).toBe(0)
})
