import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { hostname } from 'node:os'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  InspectRequestSchema,
  InspectAnswerSchema,
  InterfacesSchema,
  MetricsSchema,
  RouterLinksSchema,
  TerminatorFault,
  TerminatorStatesSchema,
  ValidateTerminatorsSchema,
} from '../../proto/gen/router_pb.ts'
import { hostInterfaces } from '../../src/router/reports/host-interfaces.ts'
import { readEndpoints, writeEndpoints } from '../../src/router/controllers/endpoints-file.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { CachedResolver } from '../../src/lib/runtime/cached-resolver.ts'
import { controllerSpiffeId } from '../../src/pki/spiffe.ts'
import { ProgramFailure } from '../../src/overlay/failure.ts'
import {
  addressesMessage,
  leaderMessage,
  readEdgeRouterHello,
  controllerHelloMessage,
} from '../../src/channel/messages/control.ts'
import { freePort } from '../support/ports.ts'
import { eventually, type ScriptedController, TestNetwork, trustDomain } from './support.ts'

let network: TestNetwork
beforeEach(async () => {
  network = await TestNetwork.create()
})
afterEach(async () => {
  await network.close()
})

const connected = (...controllers: readonly ScriptedController[]): Promise<void> =>
  eventually(() => controllers.map(({ isConnected }) => isConnected)).toEqual(
    controllers.map(() => true),
  )

function membersOnDisk(): string[] {
  const read = readEndpoints(network.path('endpoints.yml'))
  return read.kind === 'known' ? read.known.controllers.map(({ id }) => id) : [read.kind]
}

describe('A router', () => {
  test('sends a hello with its ID from the certificate, its version, its capabilities and the offer of a socket group', async () => {
    const a = await network.controller('a')
    await network.running([a.address])
    await connected(a)
    expect(a.hellos[0]).toMatchObject({
      token: 'router1',
      version: { version: 'v2.0.0' },
      type: 'ctrl.default',
      group: { isFirst: true, id: '' },
    })
    // Bits 1 and 2: several channels, and services named instead of sessions. Bit 200: certificate
    // renewal before the usual time.
    expect([...(a.hellos[0]?.headers.get(1002) ?? [])]).toEqual([
      2 ** (200 % 8),
      ...new Uint8Array(24),
      6,
    ])
  })

  test('reports to a controller that terminators of a configured binding are valid, and that terminators of any other binding are not', async () => {
    const a = await network.controller('a')
    await network.running([a.address], 'dialers: [{binding: transport}]\n')
    await connected(a)
    const bindings = ['transport', 'transport_udp', 'tunnel', 'nosuch', 'edge']
    const message = create(ValidateTerminatorsSchema, {
      terminators: bindings.map((binding) => ({ id: `of ${binding}`, binding, marker: 7n })),
    })
    a.send({ contentType: 1041, body: toBinary(ValidateTerminatorsSchema, message) })
    await eventually(() => a.ofType(1042)).toHaveLength(1)
    const answer = a.ofType(1042)[0]?.body ?? new Uint8Array()
    const { states } = fromBinary(TerminatorStatesSchema, answer)
    const unknown = { valid: false, reason: TerminatorFault.UNKNOWN_BINDING, marker: 7n }
    expect(states).toMatchObject({
      'of transport': { valid: true, marker: 7n },
      'of transport_udp': unknown,
      'of tunnel': unknown,
      'of nosuch': unknown,
      'of edge': unknown,
    })
  })

  test('connects to every controller that a controller lists as a member, and disconnects from one that a majority does not list', async () => {
    const [a, b, c] = [
      await network.controller('a'),
      await network.controller('b'),
      await network.controller('c'),
    ]
    await network.running([a.address])
    await connected(a)
    a.tell([a, b, c], 5, true)
    await connected(a, b, c)
    expect(a.hellos, 'the existing channel is kept').toHaveLength(1)
    await eventually(membersOnDisk).toEqual(['a', 'b', 'c'])
    expect(statSync(network.path('endpoints.yml')).mode & 0o777).toBe(0o600)
    a.tell([a, b], 6, true)
    b.tell([a, b], 6, false)
    await eventually(() => c.isConnected).toBe(false)
    expect(membersOnDisk()).toEqual(['a', 'b'])
    expect([a.isConnected, b.isConnected]).toEqual([true, true])
  })

  test('requests the lists of all controllers if one list omits a controller, and keeps this controller in the meantime', async () => {
    const [a, b] = [await network.controller('a'), await network.controller('b')]
    await network.running([a.address])
    await connected(a)
    a.tell([a, b], 5, true)
    await connected(a, b)
    b.tell([b], 1e12, true)
    await eventually(() => [a, b].map((each) => each.ofType(1055).length)).toEqual([1, 1])
    expect(membersOnDisk().sort()).toEqual(['a', 'b'])
    expect(a.isConnected).toBe(true)
    b.send(leaderMessage(7))
    a.send(leaderMessage(8))
    await eventually(() =>
      network.logged('leader changed').map(({ fields }) => fields['controllerId']),
    ).toEqual(['a', 'b', 'a'])
  })

  test('ignores a list that is marked as meant for OpenZiti routers, because it may omit an address', async () => {
    const [a, b] = [await network.controller('a'), await network.controller('b')]
    await network.running([a.address])
    await connected(a)
    a.tell([a, b], 5, true)
    await connected(a, b)
    const only = [{ id: 'a', addresses: [a.address], clientApis: [], publicKeySha256: a.keySha256 }]
    const update = { controllers: only, removed: [], index: 6, configurationIndex: 6 }
    for (const each of [a, b]) each.send(addressesMessage({ ...update, isLeader: false }, true))
    a.send(leaderMessage(7))
    await eventually(() => network.logged('leader changed')).toHaveLength(1)
    expect([membersOnDisk().sort(), b.isConnected]).toEqual([['a', 'b'], true])
  })

  test('refuses the key of a removed controller without sending a hello to this controller, even after a restart', async () => {
    const [a, b, c] = [
      await network.controller('a'),
      await network.controller('b'),
      await network.controller('c'),
    ]
    const endpoints = [a, b, c].map(({ address }) => address)
    const router = await network.running(endpoints)
    await connected(a, b, c)
    for (const each of [a, b]) each.tell([a, b], 6, false, [c])
    await eventually(() => c.isConnected).toBe(false)
    await router.stop()
    const hellos = c.hellos.length
    await Promise.all([a.close(), b.close()])
    await network.running(endpoints)
    await eventually(() =>
      network
        .logged('refused a controller')
        .filter(({ fields }) => fields['address'] === c.address),
    ).toMatchObject([{ fields: { reason: 'controller c was removed from the cluster' } }])
    expect(c.hellos).toHaveLength(hellos)
  })

  test('refuses a controller with the ID of a known controller and a new key, even if the CA of the network certified this key', async () => {
    const [a, b] = [await network.controller('a'), await network.controller('b')]
    const router = await network.running([a.address])
    await connected(a)
    a.tell([a, b], 5, true)
    await connected(b)
    b.tell([a, b], 5, false)
    await eventually(() => readFileSync(network.path('endpoints.yml'), 'utf8')).toContain(
      Buffer.from(b.keySha256).toString('hex'),
    )
    await router.stop()
    const { port } = b
    await b.close()
    const minted = await network.controller('b', { port })
    await network.running([a.address])
    await eventually(() => network.logged('refused a controller')).toMatchObject([
      { fields: { controllerId: 'b', reason: expect.stringContaining('pinned') as string } },
    ])
    expect(minted.hellos).toEqual([])
  })

  test('returns to the controllers in its configuration if a compromised controller wrote the endpoints file', async () => {
    const [a, b, x] = [
      await network.controller('a'),
      await network.controller('b'),
      await network.controller('x'),
    ]
    const captors = [{ id: 'x', addresses: [x.address], keySha256: null, toldBy: null }]
    writeEndpoints(network.path('endpoints.yml'), {
      endpoints: [],
      apis: [],
      controllers: captors,
      removed: [],
      trustDomain,
    })
    await network.running([a.address, b.address])
    await connected(x)
    x.tell([x], 1e12, true, [a, b])
    await connected(a, b)
    for (const each of [a, b]) each.tell([a, b], 6, false, [x])
    await eventually(() => x.isConnected).toBe(false)
    expect(membersOnDisk().sort()).toEqual(['a', 'b'])
  })

  test('reconnects to a controller that was unreachable', async () => {
    const a = await network.controller('a')
    await network.running([a.address])
    await connected(a)
    const { port } = a
    await a.close()
    await connected(await network.controller('a', { port }))
  })

  test('can start with its endpoints file, even if no controller in the configuration exists', async () => {
    const a = await network.controller('a')
    const addresses = ['tls:127.0.0.1:1', a.address]
    const controllers = [{ id: 'a', addresses, keySha256: null, toldBy: null }]
    writeEndpoints(network.path('endpoints.yml'), {
      endpoints: [],
      apis: [],
      controllers,
      removed: [],
      trustDomain,
    })
    await network.running(['tls:127.0.0.1:1'])
    await connected(a)
  })

  test('dials the leader at the new address that other controllers list', async () => {
    const [a, b, leader] = [
      await network.controller('a'),
      await network.controller('b'),
      await network.controller('leader'),
    ]
    const none = { endpoints: [], apis: [], removed: [], trustDomain }
    const controllers = [a, b, leader].map(({ id, address }) => ({
      id,
      addresses: [id === 'leader' ? 'tls:127.0.0.1:1' : address],
      keySha256: null,
      toldBy: null,
    }))
    writeEndpoints(network.path('endpoints.yml'), { ...none, controllers })
    await network.running(['tls:127.0.0.1:1'])
    await connected(a, b)
    for (const each of [a, b]) each.tell([a, b, leader], 6, false)
    await connected(leader)
  })

  test('finds a controller at the last known address after a restart while no DNS server responds', async () => {
    const uri = controllerSpiffeId(trustDomain, 'a')
    const a = await network.controller('a', { key: await network.leaf('a', [uri], ['a.test']) })
    const endpoint = `tls:a.test:${a.port}`
    let addresses: readonly string[] = ['127.0.0.1']
    const start = async (): Promise<CachedResolver> => {
      const names = new CachedResolver({
        path: network.path('endpoints.addresses.json'),
        clock: systemClock,
        lookUp: async () => await Promise.resolve({ addresses, isAnswered: addresses.length > 0 }),
      })
      await network.router([endpoint], '', { names }).start({ extends: false })
      return names
    }
    const names = await start()
    await connected(a)
    await names.saved()
    await network.closeRouters()
    await eventually(() => a.isConnected).toBe(false)
    addresses = []
    await start()
    await connected(a)
    await a.close()
    await eventually(() => JSON.stringify(network.logged('cannot reach a controller'))).toContain(
      'a.test: the name server did not answer; trying the last address 127.0.0.1: connect ECONNREFUSED',
    )
  })

  test('can start with the addresses that its enrollment wrote, even if the configuration contains none', async () => {
    const a = await network.controller('a')
    // OpenZiti's enrollment writes the same addresses once more, without controller IDs.
    const controllers = [{ id: '', endpoints: [{ address: a.address, groups: [] }] }]
    const endpoints = [a.address]
    writeFileSync(network.path('endpoints.yml'), JSON.stringify({ endpoints, controllers }))
    await network.running([])
    await connected(a)
  })

  test('uses its configuration if the endpoints file is damaged, which it logs, and writes the file again', async () => {
    const a = await network.controller('a')
    writeFileSync(network.path('endpoints.yml'), 'endpoints: [')
    await network.running([a.address])
    await connected(a)
    expect(network.logged('endpoints file cannot be used')).toHaveLength(1)
    a.tell([a], 1, true)
    await eventually(membersOnDisk).toEqual(['a'])
  })

  test('keeps only one channel to a controller that has two addresses', async () => {
    const uri = controllerSpiffeId(trustDomain, 'a')
    const key = await network.leaf('a', [uri], ['127.0.0.1', 'localhost'])
    const a = await network.controller('a', { key })
    await network.running([a.address, `tls:localhost:${a.port}`])
    // A controller closes the older of two channels of one router, so the router sends no hello on
    // the second one.
    await eventually(() => a.sockets).toBe(2)
    await eventually(() => a.openChannels).toBe(1)
    await eventually(() => network.logged('connected to controller')).toHaveLength(1)
    expect(a.hellos).toHaveLength(1)
    expect(network.logged('cannot reach a controller')).toEqual([])
  })

  test('reconnects after a controller sends a malformed message', async () => {
    const a = await network.controller('a')
    await network.running([a.address])
    await connected(a)
    for (const contentType of [20_000, 99_999, 1037, 1051, 1013]) {
      a.send({ contentType, body: Uint8Array.of(255, 255, 255) })
    }
    await eventually(() => a.hellos).toHaveLength(2)
    await eventually(() => a.openChannels).toBe(1)
    const reply = await a.channel?.request(controllerHelloMessage('v2.0.0'))
    expect(reply?.contentType).toBe(20_001)
  })

  test('exits with advice if it cannot reach any controller in time', async () => {
    const router = network.router(['tls:127.0.0.1:1'], '', { startupTimeout: '100ms' })
    await router.start({ extends: false })
    await expect(router.failed).rejects.toThrow(
      /^no controller was reached within 100 ms.*correct ctrl\.endpoints, which the router dials in addition to the addresses in .*endpoints\.yml/,
    )
  })
})

describe('A router refuses to connect to', () => {
  test.each([
    ['a controller of another trust domain', 'spiffe://other.example/controller/a', {}],
    ['a router with the host name of a controller', `spiffe://${trustDomain}/router/a`, {}],
    ['a certificate without a SPIFFE id', null, {}],
    [
      'a controller that claims the id of another controller',
      `spiffe://${trustDomain}/controller/a`,
      { claimedId: 'b' },
    ],
  ])('%s', async (_, uri, options) => {
    const key = await network.leaf('a', uri === null ? [] : [uri], ['127.0.0.1'])
    const a = await network.controller('a', { key, ...options })
    const known = { endpoints: [a.address], controllers: [], removed: [], apis: [], trustDomain }
    writeEndpoints(network.path('endpoints.yml'), known)
    await network.running([a.address])
    await eventually(() => network.logged('cannot reach a controller').length).toBe(1)
    expect(network.logged('connected to controller')).toEqual([])
    expect(a.received).toEqual([])
  })

  test('a host whose name is not in its certificate, or whose CA is unknown', async () => {
    const uri = `spiffe://${trustDomain}/controller/a`
    const other = await TestNetwork.create()
    const a = await network.controller('a', { key: await network.leaf('a', [uri], ['other.test']) })
    const b = await network.controller('b', { key: await other.leaf('b', [uri], ['127.0.0.1']) })
    await network.running([a.address, b.address])
    await eventually(() => network.logged('cannot reach a controller').length).toBe(2)
    expect([...a.hellos, ...b.hellos]).toEqual([])
    await other.close()
  })
})

describe('A router reports to controllers', () => {
  test('its host name, in its response to the hello for edge routers', async () => {
    const a = await network.controller('a')
    await network.running([a.address])
    await connected(a)
    const reply = await a.channel?.request(controllerHelloMessage('v2.0.0'))
    expect(reply?.contentType).toBe(20_001)
    expect(readEdgeRouterHello(reply?.body ?? new Uint8Array())).toEqual({
      hostname: hostname(),
      protocols: {},
    })
  })

  test('its network interfaces, and that it has no links', async () => {
    const a = await network.controller('a')
    await network.running([a.address])
    await eventually(() => [a.ofType(1035).length, a.ofType(1052).length]).toEqual([1, 1])
    const [links] = a.ofType(1035)
    expect(fromBinary(RouterLinksSchema, links?.body ?? new Uint8Array())).toMatchObject({
      links: [],
      fullRefresh: true,
    })
    const [told] = a.ofType(1052)
    const { interfaces } = fromBinary(InterfacesSchema, told?.body ?? new Uint8Array())
    expect(interfaces.flatMap(({ addresses }) => addresses)).toContain('127.0.0.1/8')
    const sent = interfaces.map(({ name, mtu, index }) => [name, Number(mtu), Number(index)])
    expect(sent).toEqual(hostInterfaces().map(({ name, mtu, index }) => [name, mtu, index]))
  })

  test('no network interfaces if the option interfaceDiscovery disables this', async () => {
    const a = await network.controller('a')
    await network.running([a.address], 'interfaceDiscovery: {disabled: true}\n')
    await eventually(() => a.ofType(1035).length).toBe(1)
    expect((await a.channel?.request(controllerHelloMessage('v')))?.contentType).toBe(20_001)
    expect(a.ofType(1052)).toEqual([])
  })

  test('its metrics at each interval: the same to all controllers, only one of which publishes them', async () => {
    const [a, b] = [await network.controller('a'), await network.controller('b')]
    const often = 'metrics: {reportInterval: 100ms, intervalAgeThreshold: 150ms}\n'
    await network.running([a.address, b.address], often)
    await connected(a, b)
    const read = (one: ScriptedController) =>
      one
        .ofType(1007)
        .map(({ body }) => fromBinary(MetricsSchema, body))
        .filter(({ intValues }) => intValues['ctrl.connected'] === 2n)
    await eventually(() => [read(a).length > 1, read(b).length > 1]).toEqual([true, true])
    const [first] = read(a)
    const same = read(b).find(({ eventId }) => eventId === first?.eventId)
    expect(first?.sourceId).toBe('router1')
    expect([first?.doNotPropagate, same?.doNotPropagate].sort()).toEqual([false, true])
    expect(Number(first?.intValues['process.rss'])).toBeGreaterThan(1024)
  })

  test('the requested inspection values by name, each as JSON, and omits unknown names', async () => {
    const a = await network.controller('a')
    await network.running([a.address])
    await connected(a)
    a.tell([a], 5, true)
    await eventually(membersOnDisk).toEqual(['a'])
    const names = [
      'router-controllers',
      'links',
      'config',
      'router-data-model-index',
      'metrics',
      'health',
      'sections',
      '__proto__',
    ]
    const body = toBinary(
      InspectRequestSchema,
      create(InspectRequestSchema, { requestedValues: names }),
    )
    const reply = await a.channel?.request({ contentType: 1013, body })
    expect(reply?.contentType).toBe(1014)
    const answer = fromBinary(InspectAnswerSchema, reply?.body ?? new Uint8Array())
    expect([answer.success, answer.errors]).toEqual([true, []])
    const values = new Map(
      answer.values.map(({ name, value }) => [name, JSON.parse(value) as unknown]),
    )
    expect([...values.keys()]).toEqual(names.slice(0, -1))
    expect(values.get('router-controllers')).toMatchObject({
      leader: 'a',
      controllers: [
        { controllerId: 'a', isConnected: true, isResponsive: true, address: a.address },
      ],
    })
    expect(values.get('config')).toMatchObject({
      v: { value: '3', source: { kind: 'file', line: 1 } },
    })
    expect(JSON.stringify(values.get('config'))).not.toContain('PRIVATE')
  })
})

describe('The health-checks API of a router', () => {
  const ask = (
    port: number,
    path: string,
  ): Promise<{ status: number; text: string; moved: unknown }> =>
    new Promise((resolve, reject) => {
      const ca = network.root.certificatePem
      const asked = request({ host: '127.0.0.1', port, path, ca, agent: false }, (answer) => {
        let text = ''
        answer.on('data', (chunk: Buffer) => (text += chunk.toString()))
        answer.on('end', () =>
          resolve({
            status: answer.statusCode ?? 0,
            text,
            moved: answer.headers['ziti-ctrl-address'],
          }),
        )
      })
      asked.on('error', reject)
      asked.end()
    })

  test('shows whether a controller responds and how many links the router has', async () => {
    const a = await network.controller('a')
    const port = await freePort()
    await network.running(
      [a.address],
      `healthChecks: {ctrlPingCheck: {initialDelay: 0s, interval: 100ms, timeout: 200ms}, linkCheck: {initialDelay: 0s, interval: 100ms, minLinks: 1}}
web: [{name: health, bindPoints: [{interface: "127.0.0.1:${port}", address: "r.test:${port}", newAddress: "r.test:1"}], apis: [{binding: health-checks}]}]
`,
    )
    await connected(a)
    type Shown = { data: { healthy: boolean; checks: Record<string, unknown>[] }; meta: object }
    const shown = async (path: string): Promise<Shown> =>
      JSON.parse((await ask(port, path)).text) as Shown
    await eventually(async () =>
      (await shown('/health-checks')).data.checks.map(({ healthy }) => healthy),
    ).toEqual([true, false])
    const { data, meta } = await shown('/health-checks')
    expect(meta).toEqual({})
    expect(data.healthy).toBe(false)
    expect(data.checks[1]).toMatchObject({
      id: 'link.health',
      err: '0 links, and 1 are needed',
      consecutiveFailures: expect.any(Number) as number,
    })
    expect((await shown('/health-checks?type=short')).data.checks[0]).toEqual({
      id: 'controllerPing',
      healthy: true,
    })
    expect((await ask(port, '/')).moved).toBe('r.test:1')
    await a.close()
    await eventually(async () => (await shown('/health-checks')).data.checks[0]?.['err']).toBe(
      'connected to no controller',
    )
  })
})

describe('A router whose configuration enables message tracing or profiling', () => {
  test('writes each decoded message to the trace file, without the secret of the channel', async () => {
    const a = await network.controller('a')
    await network.running([a.address], 'trace: {path: messages.log}\n')
    await connected(a)
    a.tell([a], 5, true)
    await eventually(() => readFileSync(network.path('messages.log'), 'utf8')).toContain(
      'updateCtrlAddresses',
    )
    type Line = Readonly<Record<string, unknown>> & { readonly headers: Record<string, string> }
    const lines = readFileSync(network.path('messages.log'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
    expect(lines.map(({ direction, name }) => `${String(direction)} ${String(name)}`)).toEqual(
      expect.arrayContaining([
        'out hello',
        'in result',
        'out routerLinks',
        'in updateCtrlAddresses',
      ]),
    )
    expect(lines.find(({ name }) => name === 'updateCtrlAddresses')).toMatchObject({
      peer: 'a',
      body: { index: '5', isLeader: true, controllers: [{ id: 'a' }] },
    })
    expect(lines.find(({ name }) => name === 'result')?.headers['10']).toMatch(/^\(\d+ bytes\)$/)
    expect(statSync(network.path('messages.log')).mode & 0o777).toBe(0o600)
  })

  test('writes its profiles to files', async () => {
    const a = await network.controller('a')
    const router = await network.running(
      [a.address],
      'profile: {cpu: {path: cpu.cpuprofile}, memory: {path: m.heapprofile, intervalMs: 100}}\n',
    )
    await eventually(() =>
      statSync(network.path('m.heapprofile'), { throwIfNoEntry: false })?.isFile(),
    ).toBe(true)
    await router.stop()
    for (const name of ['cpu.cpuprofile', 'm.heapprofile']) {
      const profile = JSON.parse(readFileSync(network.path(name), 'utf8')) as object
      expect(Object.keys(profile)).toContain(name.startsWith('cpu') ? 'nodes' : 'head')
    }
  })
})

describe('A router does not start', () => {
  test.each([
    [
      'its certificate file is missing',
      'r.cert',
      null,
      /^identity\.cert: .*r\.cert does not exist; enroll this router first/,
    ],
    ['its key file is missing', 'r.key', null, /^identity\.key: .*cannot be read/],
    [
      'its CA file contains no certificate',
      'r.ca',
      'nothing',
      /^identity\.ca: no PEM certificate found/,
    ],
    [
      'its certificate and its key do not match',
      'r.cert',
      'r.server.cert',
      /^identity\.key: the private key does not belong/,
    ],
  ])('if %s', (_fault, name, content, told) => {
    const text = content?.startsWith('r.') === true ? readFileSync(network.path(content)) : content
    writeFileSync(network.path(name), text ?? '')
    if (text === null) {
      network.remove(name)
    }
    expect(() => network.router(['tls:127.0.0.1:1'])).toThrow(told)
    expect(() => network.router(['tls:127.0.0.1:1'])).toThrow(ProgramFailure)
  })

  test('if its trace file cannot be written', () => {
    expect(() => network.router(['tls:127.0.0.1:1'], 'trace: {path: none/at/all}\n')).toThrow(
      /^trace\.path: .*cannot be written/,
    )
  })
})
