import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  CircuitConfirmationSchema,
  CreateCircuitAnswerSchema,
  CreateCircuitSchema,
  CreateFabricCircuitSchema,
  DestinationType,
  FaultSchema,
  FaultSubject,
  type Route,
  RouterLinksSchema,
  RouteSchema,
  UnrouteSchema,
} from '../../proto/gen/router_pb.ts'
import { encodeBytesMap, readBytesMap } from '../../src/channel/header-maps.ts'
import { encodeInt32, readInt32, readText, encodeText } from '../../src/channel/headers.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import { DialCounter } from '../../src/events/sources/dial-counter.ts'
import { EventBus } from '../../src/events/event-bus.ts'
import { eventLimits } from '../../src/events/limits.ts'
import { ObservationEvents } from '../../src/events/sources/observation-events.ts'
import { MetricSampler } from '../../src/events/sources/metric-sampler.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { ServiceHost, HostedService } from '../../src/fabric/circuits/host-lookup.ts'
import { ZERO_CONSENSUS_STATS } from '../../src/ports/stats.ts'
import type {
  ClientAccessRequest,
  ClientAccessDecision,
  RouterClients,
} from '../../src/ports/router-clients.ts'
import { CircuitHandler } from '../../src/fabric/circuits/circuit-handler.ts'
import {
  circuitEventData,
  createCircuitTable,
  type CircuitTable,
} from '../../src/fabric/circuits/circuit-table.ts'
import { createLinkHandler, closeLinkMessage } from '../../src/fabric/links/link-handler.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { RouterStage, upToDate } from './stage.ts'
import { Tunnels } from './tunnels.ts'

const named = { serviceId: 's1', identityId: 'i1', identityName: 'clerk' }
const admitted: ClientAccessDecision = {
  ok: true,
  client: { ...named, sessionId: 'dial', apiSessionId: 'session' },
}

let stage: RouterStage
let links: LinkTable
let handler: CircuitHandler
let tunnels: Tunnels
let circuits: CircuitTable
let told: EventLog
let judged: ClientAccessDecision
let hosts: ServiceHost[]
let claims: ClientAccessRequest[]
let encryptionRequired: boolean
let strategy: HostedService['strategy']

beforeEach(() => {
  stage = new RouterStage()
  judged = admitted
  claims = []
  tunnels = new Tunnels()
  encryptionRequired = false
  strategy = 'smartrouting'
  hosts = [host('t1', 'er2')]
  const { channels } = stage
  told = new EventLog()
  circuits = createCircuitTable(
    'ctrl1',
    (id, message) => channels.connection(id)?.channel.send(message),
    (circuit) => told.tell(circuitEventData(circuit, 'deleted')),
  )
  links = new LinkTable({
    owner: 'ctrl1',
    isBarred: () => false,
    isConnected: (id) => channels.connection(id) !== undefined,
    sendGone: (id, link) => channels.connection(id)?.channel.send(closeLinkMessage(link)),
    onGone: (link) => handler.upkeep.onLinkGone(link),
  })
  const log = { info: () => undefined, warn: () => undefined }
  const clients = {
    judge: (claim: ClientAccessRequest) => {
      claims.push(claim)
      return Promise.resolve(judged)
    },
  } as Partial<RouterClients> as RouterClients
  let isBuilt = false
  const startedMs = systemClock.monotonicMs()
  handler = new CircuitHandler({
    table: circuits,
    clients,
    tunnels,
    reads: upToDate,
    links,
    log,
    // Simulates that the controller has run for a while, because a controller that has just started
    // waits for hosts.
    clock: { ...systemClock, monotonicMs: () => (isBuilt ? startedMs + 60_000 : startedMs) },
    draw: () => 0,
    hosts: {
      service: () => ({ encryptionRequired, maxIdleTimeMs: 60_000, strategy, hosts }),
      routerCost: () => 10,
      isEndOnly: () => false,
    },
    connection: (id) => channels.connection(id),
    publishFact: told.tell,
  })
  isBuilt = true
  channels.add(handler)
  channels.add(
    createLinkHandler({
      table: links,
      log,
      isCertificateOf: () => false,
      onOtherFault: (connection, fault) => handler.upkeep.onFault(connection, fault),
      onLinksReported: (routerId, ids) => handler.upkeep.onLinksReported(routerId, ids),
    }),
  )
})
afterEach(() => stage.channels.stop())

function host(terminatorId: string, routerId: string): ServiceHost {
  return {
    terminatorId,
    routerId,
    hostId: 'i2',
    isMadeByRouter: false,
    binding: 'edge',
    address: `at ${terminatorId}`,
    cost: 0,
    precedence: 'default',
    instanceId: '',
    peerData: new Map([[1003, encodeText('key of the host')]]),
  }
}

const linked = (id: string, from: string, to: string) =>
  links.report(from, {
    id,
    destRouterId: to,
    protocol: 'tls',
    dialAddress: '',
    iteration: 1,
    connections: [],
  })

async function dial(pipe: Pipe, peerData: ReadonlyMap<number, Uint8Array> = new Map()) {
  const headers: ChannelMessage['headers'] = new Map([
    [11, encodeText('session token')],
    [14, encodeText('api token')],
    [12, Buffer.concat([encodeInt32(1), encodeInt32(2), encodeText('aa')])],
    [10, encodeBytesMap(peerData)],
  ])
  pipe.say({ contentType: 20_218, sequence: 50, headers })
  await settle()
}

const routes = (pipe: Pipe): Route[] =>
  pipe.ofType(1005).map(({ body }) => fromBinary(RouteSchema, body))
const unroutes = (pipe: Pipe) =>
  pipe.ofType(1006).map(({ body }) => {
    const { circuitId, now } = fromBinary(UnrouteSchema, body)
    return [circuitId, now]
  })

async function answer(
  pipe: Pipe,
  route: Route | undefined,
  error: string | null = null,
  code: number | null = null,
) {
  const headers: ChannelMessage['headers'] = new Map([
    [1101, encodeInt32(route?.attempt ?? 0)],
    error === null ? [1102, Uint8Array.of(1)] : [1103, encodeText(error)],
    ...(code === null ? [] : ([[1104, Uint8Array.of(code)]] as const)),
    ...(error === null ? ([[1110, encodeText('seen by the host')]] as const) : []),
  ])
  pipe.say({ contentType: 1022, headers, body: encodeText(route?.circuitId ?? '') })
  await settle()
}

async function laid(): Promise<{ er1: Pipe; er2: Pipe; id: string }> {
  const er1 = await stage.dial('er1')
  const er2 = await stage.dial('er2')
  linked('l1', 'er1', 'er2')
  await dial(er1)
  const [first] = routes(er1)
  await answer(er1, first)
  await answer(er2, routes(er2)[0])
  return { er1, er2, id: first?.circuitId ?? '' }
}

async function tellFault(pipe: Pipe, subject: FaultSubject, id: string, iteration = 0) {
  const fault = create(FaultSchema, { subject, id, iteration })
  pipe.say({ contentType: 1004, body: toBinary(FaultSchema, fault) })
  await settle()
}

async function tellLinks(pipe: Pipe, id: string, destRouterId: string) {
  const told = { fullRefresh: true, links: [{ id, destRouterId, iteration: 1 }] }
  const body = toBinary(RouterLinksSchema, create(RouterLinksSchema, told))
  pipe.say({ contentType: 1035, body })
  await settle()
}

async function askForListener(
  pipe: Pipe,
  service: string,
  peerData: Readonly<Record<number, Uint8Array>> = {},
): Promise<void> {
  const request = create(CreateFabricCircuitSchema, { ingressId: 'me', service, peerData })
  const body = toBinary(CreateFabricCircuitSchema, request)
  pipe.say({ contentType: 1000, sequence: 51, body })
  await settle()
}

const textOf = (message: ChannelMessage | undefined): string =>
  Buffer.from(message?.body ?? []).toString()

describe('a circuit that a router requests for its own listener', () => {
  test('requires that the router may dial the service, and the response contains the circuit’s endpoint and the data from the host', async () => {
    hosts = [host('t1', 'er1')]
    const er1 = await stage.dial('er1')
    await askForListener(er1, 'web')
    expect(tunnels.claims.slice(0, 2)).toEqual([
      { routerId: 'er1', type: 'Dial', service: { id: 'web' } },
      { routerId: 'er1', type: 'Dial', service: { name: 'web' } },
    ])
    const [route] = routes(er1)
    await answer(er1, route)
    const [reply] = er1.ofType(1001)
    expect(readInt32(reply?.headers ?? new Map(), 1)).toBe(51)
    expect(textOf(reply)).toBe(route?.circuitId)
    const ingress = route?.forwards.find(({ dstType }) => dstType === DestinationType.START)
    expect(readText(reply?.headers ?? new Map(), 1100)).toBe(ingress?.dstAddress)
    expect(readText(reply?.headers ?? new Map(), 1003)).toBe('key of the host')
    expect(reply?.headers.has(1110), 'where the target of the host is').toBe(false)
    expect(circuits.list()).toMatchObject([{ clientId: 'er1', serviceId: 's1' }])
  })

  test('can be requested for one named instance among the hosts of the service', async () => {
    hosts = [host('t1', 'er1'), { ...host('t2', 'er1'), instanceId: 'blue' }]
    const er1 = await stage.dial('er1')
    await askForListener(er1, 'blue@web')
    expect(tunnels.claims.at(0)?.service).toEqual({ id: 'web' })
    expect(routes(er1)[0]?.egress?.destination).toBe('at t2')
  })

  test.each(['tunnel', 'service', 'access', 'router', 'posture'] as const)(
    'is refused with a message that names the fault: %s',
    async (fault) => {
      hosts = [host('t1', 'er1')]
      const er1 = await stage.dial('er1')
      tunnels.judged = { ok: false, fault }
      await askForListener(er1, 'web')
      expect(textOf(er1.ofType(1016)[0])).toBe(`dial refused: ${fault}`)
      expect(routes(er1)).toEqual([])
    },
  )

  test('is refused for a service with end-to-end encryption, because a listener has no key', async () => {
    hosts = [host('t1', 'er1')]
    encryptionRequired = true
    const er1 = await stage.dial('er1')
    await askForListener(er1, 'web')
    expect(textOf(er1.ofType(1016)[0])).toBe('the service is encrypted end to end')
    expect(routes(er1)).toEqual([])
  })

  test('ends when the router loses the right to dial', async () => {
    hosts = [host('t1', 'er1')]
    const er1 = await stage.dial('er1')
    await askForListener(er1, 'web')
    const [route] = routes(er1)
    await answer(er1, route)
    handler.upkeep.endUngranted(() => false)
    await settle()
    expect(unroutes(er1)).toEqual([[route?.circuitId, true]])
  })
})

describe('a circuit', () => {
  test('is requested in a message body by older routers, which also get the response in a message body', async () => {
    hosts = [host('t1', 'er1')]
    const er1 = await stage.dial('er1')
    const asked = create(CreateCircuitSchema, {
      sessionToken: 'session token',
      apiSessionToken: 'api token',
      fingerprints: ['aa'],
      peerData: { 1003: Uint8Array.of(7) },
    })
    const body = toBinary(CreateCircuitSchema, asked)
    er1.say({ contentType: 20_205, sequence: 50, body })
    await settle()
    const [route] = routes(er1)
    expect(route?.egress?.peerData[1003]).toEqual(Uint8Array.of(7))
    await answer(er1, route)
    const [reply] = er1.ofType(20_206)
    expect(readInt32(reply?.headers ?? new Map(), 1)).toBe(50)
    const said = fromBinary(CreateCircuitAnswerSchema, reply?.body ?? body)
    expect(said).toMatchObject({
      circuitId: route?.circuitId,
      address: expect.any(String) as string,
    })
    expect(said.tags).toEqual({ serviceId: 's1', clientId: 'i1', hostId: 'i2' })
    expect(Buffer.from(said.peerData[1003] ?? []).toString()).toBe('key of the host')
    expect(claims).toMatchObject([{ sessionToken: 'session token', fingerprints: ['aa'] }])

    judged = { ok: false, fault: 'access' }
    er1.say({ contentType: 20_205, sequence: 51, body })
    await settle()
    const [refusal] = er1.ofType(20_002)
    expect(readInt32(refusal?.headers ?? new Map(), 1014)).toBe(14)
  })

  test('is routed from the client’s router to the host’s router, and the response contains the ingress address', async () => {
    const { er1, er2, id } = await laid()
    const [near] = routes(er1)
    const [far] = routes(er2)
    const [reply] = er1.ofType(20_219)
    const ingress = readText(reply?.headers ?? new Map(), 12) ?? ''
    expect(near?.forwards).toMatchObject([
      { srcAddress: ingress, dstAddress: 'l1', dstType: DestinationType.TO_LINK },
      { srcAddress: 'l1', dstAddress: ingress, dstType: DestinationType.START },
    ])
    expect(near?.egress).toBeUndefined()
    const egress = far?.egress?.address ?? ''
    expect(far?.egress).toMatchObject({ binding: 'edge', destination: 'at t1' })
    expect(far?.forwards).toMatchObject([
      { srcAddress: 'l1', dstAddress: egress, dstType: DestinationType.END },
      { srcAddress: egress, dstAddress: 'l1', dstType: DestinationType.TO_LINK },
    ])
    expect(far?.timeout).toBe(10_000_000_000n)
    expect(readText(reply?.headers ?? new Map(), 11)).toBe(id)
    const told = readBytesMap(reply?.headers ?? new Map(), 10)
    expect([...(told?.keys() ?? [])].sort()).toEqual([1003])
    expect(circuits.get(id)).toMatchObject({
      clientId: 'i1',
      serviceId: 's1',
      terminatorId: 't1',
      routerIds: ['er1', 'er2'],
      linkIds: ['l1'],
    })
    const shown = { fingerprints: ['aa'], sessionToken: 'session token' }
    const asked = { routerId: 'er1', type: 'Dial', apiSessionToken: 'api token' }
    expect(claims).toEqual([{ ...asked, ...shown, isJudgedByRouter: false }])
  })

  test('is routed to another host if the dialed host fails', async () => {
    hosts = [host('t1', 'er2'), host('t2', 'er2')]
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    linked('l1', 'er1', 'er2')
    await dial(er1)
    await answer(er1, routes(er1)[0])
    await answer(er2, routes(er2)[0], 'connection refused')
    expect(unroutes(er1)).toEqual([[routes(er1)[0]?.circuitId, true]])
    const [, second] = routes(er2)
    expect(second).toMatchObject({ attempt: 1, egress: { destination: 'at t2' } })
    await answer(er2, second)
    await answer(er1, routes(er1)[1])
    expect(er1.ofType(20_219)).toHaveLength(1)
    expect(circuits.list().map(({ terminatorId }) => terminatorId)).toEqual(['t2'])
  })

  test.each([
    ['ingress', FaultSubject.INGRESS],
    ['egress', FaultSubject.EGRESS],
  ])(
    'is ended on all its routers when one of them reports a fault of its %s endpoint',
    async (_what, subject) => {
      const { er1, er2, id } = await laid()
      await tellFault(er1, subject, id)
      expect(circuits.list()).toEqual([])
      expect([unroutes(er1), unroutes(er2)]).toEqual([[[id, false]], [[id, false]]])
    },
  )

  test('is rerouted when its link is lost, and ends if there is no other path', async () => {
    const { er2, id } = await laid()
    const er3 = await stage.dial('er3')
    linked('l2', 'er1', 'er3')
    linked('l3', 'er3', 'er2')
    links.lost('er1', 'l1', 1)
    await settle()
    expect(routes(er3)[0]).toMatchObject({ circuitId: id, attempt: 99_969_996 })
    expect(routes(er2)[1]?.egress).toBeUndefined()
    expect(circuits.get(id)?.linkIds).toEqual(['l2', 'l3'])
    links.lost('er3', 'l3', 1)
    await settle()
    expect(circuits.list()).toEqual([])
    expect(unroutes(er2)).toEqual([[id, true]])
  })

  test('ends immediately if one router reports the loss of its link while the router that dialed the link is disconnected', async () => {
    const { er1, er2, id } = await laid()
    er1.destroy()
    await settle()
    expect([links.list(), circuits.list()]).toMatchObject([[], [{ id }]])
    await tellFault(er2, FaultSubject.LINK, 'l1', 1)
    expect(circuits.list()).toEqual([])
    expect(unroutes(er2)).toEqual([[id, true]])
  })

  test('ends if the router that dialed its link reconnects without this link', async () => {
    const { er1, id } = await laid()
    er1.destroy()
    await settle()
    const again = await stage.dial('er1')
    await tellLinks(again, 'l9', 'er3')
    expect(circuits.list()).toEqual([])
    expect(unroutes(again)).toEqual([[id, true]])
  })

  test('ends if one of its routers refuses a new route because the circuit’s endpoint no longer exists there', async () => {
    const { er2, id } = await laid()
    await stage.dial('er3')
    linked('l2', 'er1', 'er3')
    linked('l3', 'er3', 'er2')
    links.lost('er1', 'l1', 1)
    await settle()
    await answer(er2, routes(er2)[1], 'no link l3', 8)
    expect(circuits.get(id)).toBeDefined()
    await answer(er2, routes(er2)[1], 'no end there', 0)
    expect(circuits.list()).toEqual([])
  })

  test('is routed again if a router reconnects, because the router may have lost the route or restarted', async () => {
    const { er1, id } = await laid()
    er1.destroy()
    await settle()
    const again = await stage.dial('er1')
    for (let time = 0; time < 2; time += 1) await tellLinks(again, 'l1', 'er2')
    expect(routes(again)).toMatchObject([{ circuitId: id, attempt: 99_969_996 }])
    await answer(again, routes(again)[0], 'no end there', 0)
    expect(circuits.list()).toEqual([])
  })

  test('is not affected by a late response to an earlier routing attempt', async () => {
    hosts = [host('t1', 'er2'), host('t2', 'er2')]
    const er1 = await stage.dial('er1')
    const er2 = await stage.dial('er2')
    linked('l1', 'er1', 'er2')
    await dial(er1)
    await answer(er2, routes(er2)[0], 'connection refused')
    await answer(er1, routes(er1)[0])
    expect(unroutes(er1), 'the route of the first attempt is removed').toHaveLength(1)
    await answer(er2, routes(er2)[1])
    expect(er1.ofType(20_219)).toEqual([])
    await answer(er1, routes(er1)[1])
    expect(er1.ofType(20_219)).toHaveLength(1)
  })

  test('that this controller does not know is removed from a router that confirms the circuit or reports a fault of the circuit', async () => {
    const { er1, id } = await laid()
    const ids = create(CircuitConfirmationSchema, { circuitIds: [id, 'of another start'] })
    er1.say({ contentType: 1034, body: toBinary(CircuitConfirmationSchema, ids) })
    await tellFault(er1, FaultSubject.EGRESS, 'of-another-start')
    await dial(er1)
    await tellFault(er1, FaultSubject.INGRESS, routes(er1)[1]?.circuitId ?? '')
    const unknown = ['of another start', 'of-another-start']
    expect(unroutes(er1), 'no circuit that is being created').toEqual(
      unknown.map((other) => [other, true]),
    )
  })

  test.each([
    ['ends', 'a router at its end reports an idle time of 60,000 ms', 'er2', 60_000, []],
    ['does not end', 'a router at its end reports 59,999 ms', 'er2', 59_999, ['c']],
    [
      'does not end',
      'only a router in the middle of its path reports 60,000 ms',
      'er3',
      60_000,
      ['c'],
    ],
  ])('with a maximum idle time of 60,000 ms %s if %s', async (...of) => {
    const [, , routerId, idleMs, left] = of
    const { er2, id } = await laid()
    const er3 = await stage.dial('er3')
    linked('l2', 'er1', 'er3')
    linked('l3', 'er3', 'er2')
    links.lost('er1', 'l1', 1)
    const idle = { circuitIds: [id], idleTimes: { [id]: BigInt(idleMs) * 1_000_000n } }
    const body = toBinary(CircuitConfirmationSchema, create(CircuitConfirmationSchema, idle))
    const pipe = routerId === 'er2' ? er2 : er3
    pipe.say({ contentType: 1034, body })
    await settle()
    expect(circuits.list().map(() => 'c')).toEqual(left)
  })

  test('that a router reports without knowing its owner is not removed from the router, because another controller may be the owner', async () => {
    const { er1, id } = await laid()
    await tellFault(er1, FaultSubject.UNKNOWN_OWNER_FORWARD, `of-another ${id}`)
    expect(unroutes(er1)).toEqual([])
    expect(routes(er1)).toHaveLength(2)
  })

  test('is routed to another host after a dial to the cheaper host has failed', async () => {
    hosts = [host('t1', 'er1'), { ...host('t2', 'er1'), cost: 15 }]
    const er1 = await stage.dial('er1')
    await dial(er1)
    await answer(er1, routes(er1)[0], 'no such port', 4)
    await answer(er1, routes(er1)[1])
    for (const { id } of circuits.list()) circuits.remove(id)
    await dial(er1)
    const dialed = routes(er1).map(({ egress }) => egress?.destination)
    expect(dialed).toEqual(['at t1', 'at t2', 'at t2'])
  })

  test('is routed to the host to which this controller has fewer circuits', async () => {
    hosts = [host('t1', 'er1'), { ...host('t2', 'er1'), cost: 1 }]
    const er1 = await stage.dial('er1')
    for (const at of [0, 1]) {
      await dial(er1)
      await answer(er1, routes(er1)[at])
    }
    expect(routes(er1).map(({ egress }) => egress?.destination)).toEqual(['at t1', 'at t2'])
    for (const { id } of circuits.list()) circuits.remove(id)
    await dial(er1)
    expect(routes(er1).at(-1)?.egress?.destination).toBe('at t1')
  })

  test('is routed to the client’s previous host if the service has the sticky strategy', async () => {
    strategy = 'sticky'
    hosts = [host('t1', 'er1'), { ...host('t2', 'er1'), cost: 100 }]
    const er1 = await stage.dial('er1')
    await dial(er1, new Map([[1114, encodeText('t2')]]))
    const [route] = routes(er1)
    expect(route?.egress?.destination).toBe('at t2')
    await answer(er1, route)
    const [reply] = er1.ofType(20_219)
    const told = readBytesMap(reply?.headers ?? new Map(), 10)
    expect(Buffer.from(told?.get(1114) ?? []).toString()).toBe('t2')
  })

  test('continues while a router on its path is disconnected from this controller', async () => {
    const { er1, id } = await laid()
    er1.destroy()
    await settle()
    expect(circuits.get(id)).toBeDefined()
  })
})

type EventJson = Readonly<Record<string, unknown>>

/** The events that result from the observations of the circuit handler. */
class EventLog {
  readonly #bus = new EventBus({
    selfId: 'ctrl1',
    generation: 1,
    startedAtMs: 1,
    limits: eventLimits,
    appliedIndex: () => 7,
  })
  readonly #dials = new DialCounter(systemClock.nowMs())
  readonly #live = new ObservationEvents({
    bus: this.#bus,
    clock: systemClock,
    dials: this.#dials,
    isConnected: () => true,
    state: { findAll: () => [] },
  })
  readonly tell = this.#live.publishFact

  /** Events of one namespace, after all observations so far have become events. */
  async of(namespace: string): Promise<EventJson[]> {
    await new Promise((resolve) => setImmediate(resolve))
    const { ring } = this.#bus
    return Array.from(
      { length: ring.end },
      (_, at) => JSON.parse(ring.at(at)?.text ?? '{}') as EventJson,
    ).filter((one) => one['namespace'] === namespace)
  }

  /** Simulates that the interval has ended and events have a reader. */
  async counts(): Promise<EventJson[]> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#bus.want(['service'])
    const cluster = { selfId: 'ctrl1', members: () => [], leaderId: () => null }
    new MetricSampler({
      bus: this.#bus,
      clock: systemClock,
      dials: this.#dials,
      vitals: () => ZERO_CONSENSUS_STATS,
      cluster: { ...cluster, leaderContactMs: () => 0 },
      state: { count: () => 0, appliedIndex: 7 },
      metricsIntervalMs: 1000,
      entityCountIntervalMs: 1000,
    }).publishDials()
    return await this.of('service')
  }
}

describe('Circuit events contain', () => {
  test('the creation, the reroute and the end of a circuit', async () => {
    const { id } = await laid()
    await stage.dial('er3')
    linked('l2', 'er1', 'er3')
    linked('l3', 'er3', 'er2')
    links.lost('er1', 'l1', 1)
    links.lost('er3', 'l3', 1)
    await settle()
    const [created, changed, deleted, ...more] = await told.of('circuit')
    expect(more).toEqual([])
    const ends = { version: 2, circuit_id: id, client_id: 'dial', service_id: 's1' }
    const tags = { clientId: 'i1', hostId: 'i2', serviceId: 's1' }
    expect(created).toMatchObject({
      ...ends,
      event_type: 'created',
      terminator_id: 't1',
      instance_id: '',
      link_count: 1,
      path: { nodes: ['er1', 'er2'], links: ['l1'], ingress_id: '', egress_id: '' },
      tags,
      event_src_id: 'ctrl1',
      creation_timespan: expect.any(Number) as number,
    })
    expect(changed).toMatchObject({
      ...ends,
      event_type: 'pathUpdated',
      link_count: 2,
      path: { nodes: ['er1', 'er3', 'er2'], links: ['l2', 'l3'] },
    })
    expect(deleted).toMatchObject({ ...ends, event_type: 'deleted' })
    expect(deleted?.['duration']).toBeGreaterThanOrEqual(0)
    expect(created).not.toHaveProperty('duration')
  })

  test.each([
    [null, 'ROUTER_ERR_GENERIC', 'service.dial.error_other'],
    [1, 'ROUTER_ERR_INVALID_TERMINATOR', 'service.dial.terminator.invalid'],
    [2, 'ROUTER_ERR_MISCONFIGURED_TERMINATOR', 'service.dial.terminator.misconfigured'],
    [3, 'ROUTER_ERR_DIAL_TIMED_OUT', 'service.dial.terminator.timeout'],
    [4, 'ROUTER_ERR_CONN_REFUSED', 'service.dial.terminator.connection_refused'],
    [9, 'ROUTER_ERR_RESOURCES_NOT_AVAILABLE', 'service.dial.error_other'],
    [77, 'ROUTER_ERR_GENERIC', 'service.dial.error_other'],
  ])(
    'a failed dial: for the error code %s of the router, the cause is %s',
    async (code, cause, type) => {
      hosts = [host('t1', 'er1')]
      const er1 = await stage.dial('er1')
      await dial(er1)
      await answer(er1, routes(er1)[0], 'it is so', code)
      await answer(er1, routes(er1)[1], 'it is so', code)
      const failed = await told.of('circuit')
      expect(failed).toMatchObject([
        { event_type: 'failed', failure_cause: cause, service_id: 's1', terminator_id: '' },
      ])
      expect((await told.counts()).map((one) => [one['event_type'], one['count']])).toEqual([
        [type, 2],
        ['service.dial.fail', 1],
      ])
    },
  )

  test('the number of dials of a service, by terminator and result', async () => {
    await laid()
    const er3 = await stage.dial('er3')
    await dial(er3)
    const named = { namespace: 'service', version: 2, service_id: 's1', count: 1 }
    expect(await told.counts()).toMatchObject([
      { ...named, event_type: 'service.dial.success', terminator_id: 't1' },
      { ...named, event_type: 'service.dial.fail', terminator_id: '' },
    ])
    expect(await told.counts()).toHaveLength(2)
  })
})

describe('a dial is refused', () => {
  const refusal = (pipe: Pipe): readonly [number | null, string] => {
    const [message] = pipe.ofType(20_002)
    const { headers = new Map<number, Uint8Array>(), body } = message ?? {}
    return [readInt32(headers, 1014), Buffer.from(body ?? []).toString('utf8')]
  }

  test.each([
    ['apiSession', 2, 'dial refused: apiSession'],
    ['session', 3, 'Invalid Session'],
    ['sessionType', 4, 'dial refused: sessionType'],
    ['router', 5, 'dial refused: router'],
    ['service', 6, 'dial refused: service'],
    ['access', 14, 'dial refused: access'],
    ['posture', 15, 'dial refused: posture'],
  ] as const)(
    'with the error code and text that belong to the fault: %s',
    async (fault, code, text) => {
      judged = { ok: false, fault }
      const er1 = await stage.dial('er1')
      await dial(er1)
      expect(refusal(er1)).toEqual([code, text])
      expect(routes(er1)).toEqual([])
    },
  )

  test('if the service is encrypted end to end and the client sends no key', async () => {
    encryptionRequired = true
    const er1 = await stage.dial('er1')
    await dial(er1)
    expect(refusal(er1)).toEqual([11, 'the service is encrypted end to end'])
  })

  test('if no host can be reached, or if all hosts fail', async () => {
    const er1 = await stage.dial('er1')
    await dial(er1)
    expect(refusal(er1)).toEqual([8, 'the service has no host that can be reached'])
    hosts = [host('t1', 'er1')]
    const again = await stage.dial('er1')
    await dial(again)
    for (const at of [0, 1]) await answer(again, routes(again)[at], 'connection refused')
    expect(refusal(again)).toEqual([8, 'connection refused'])
    // If the hosting program rejects the dial, it is dialed only once.
    const last = await stage.dial('er1')
    await dial(last)
    await answer(last, routes(last)[0], 'rejected by application', 5)
    expect(refusal(last)).toEqual([8, 'rejected by application'])
    expect(circuits.list()).toEqual([])
  })
})
