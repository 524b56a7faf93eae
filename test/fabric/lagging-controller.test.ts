import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { CreateFabricCircuitSchema, type Route, RouteSchema } from '../../proto/gen/router_pb.ts'
import { encodeInt32, readInt32, encodeText } from '../../src/channel/headers.ts'
import type { ServiceHost } from '../../src/fabric/circuits/host-lookup.ts'
import { CircuitHandler } from '../../src/fabric/circuits/circuit-handler.ts'
import { createCircuitTable } from '../../src/fabric/circuits/circuit-table.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import { PresentedSessionTokens } from '../../src/fabric/clients/presented-session-tokens.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ClientAccessDecision } from '../../src/ports/router-clients.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { readsThat, RouterStage } from './stage.ts'
import { Tunnels } from './tunnels.ts'

const client = {
  sessionId: 'dial',
  apiSessionId: 'session',
  serviceId: 's1',
  identityId: 'i1',
  identityName: 'clerk',
}
const host: ServiceHost = {
  terminatorId: 't1',
  routerId: 'er1',
  hostId: 'i2',
  isMadeByRouter: false,
  binding: 'edge',
  address: 'at t1',
  cost: 0,
  precedence: 'default',
  instanceId: '',
  peerData: new Map(),
}

let stage: RouterStage
let tunnels: Tunnels
let judged: ClientAccessDecision
let judgements: number
let hosts: ServiceHost[]
let links: LinkTable
let handler: CircuitHandler
let nowMs: number
/** Runs when the latest state is read; set by a test. */
let onLatest: () => void

beforeEach(() => {
  stage = new RouterStage()
  tunnels = new Tunnels()
  judged = { ok: true, client }
  judgements = 0
  hosts = [host]
  nowMs = 1_000_000
  links = new LinkTable({
    owner: 'ctrl1',
    isBarred: () => false,
    isConnected: () => true,
    sendGone: () => undefined,
    onGone: () => undefined,
  })
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
  onLatest = () => undefined
  const { channels } = stage
  const connection = channels.connection.bind(channels)
  const reads = readsThat(() => onLatest())
  const clients = {
    judge: () => {
      judgements += 1
      return Promise.resolve(judged)
    },
    report: () => Promise.resolve(true),
  }
  handler = new CircuitHandler({
    table: createCircuitTable('ctrl1', (id, message) => connection(id)?.channel.send(message)),
    clients: new PresentedSessionTokens(clients, reads, clock),
    tunnels,
    reads,
    connection,
    links,
    hosts: {
      service: () => ({
        encryptionRequired: false,
        maxIdleTimeMs: 0,
        strategy: 'smartrouting',
        hosts,
      }),
      routerCost: () => 10,
      isEndOnly: () => false,
    },
    clock,
    draw: () => 0,
    log: { info: () => undefined, warn: () => undefined },
  })
  channels.add(handler)
})
afterEach(() => stage.channels.stop())

async function dial(pipe: Pipe): Promise<void> {
  const headers = new Map([
    [11, encodeText('session token')],
    [14, encodeText('api token')],
    [12, Buffer.concat([encodeInt32(1), encodeInt32(2), encodeText('aa')])],
  ])
  pipe.say({ contentType: 20_218, sequence: 50, headers })
  await settle()
}

const routes = (pipe: Pipe): Route[] =>
  pipe.ofType(1005).map(({ body }) => fromBinary(RouteSchema, body))

test('A controller whose state lags creates a circuit for a session that another controller has just opened', async () => {
  judged = { ok: false, fault: 'session' }
  onLatest = () => (judged = { ok: true, client })
  const er1 = await stage.dial('er1')
  await dial(er1)
  expect(routes(er1)).toHaveLength(1)
  expect(judgements).toBe(2)
})

test('A controller whose state lags creates a circuit to a terminator that another controller has just written', async () => {
  hosts = []
  onLatest = () => (hosts = [host])
  const er1 = await stage.dial('er1')
  await dial(er1)
  expect(routes(er1).map(({ egress }) => egress?.destination)).toEqual(['at t1'])
})

test('A controller whose state lags creates a circuit for a router that has just received the right to dial at another controller', async () => {
  const granted = tunnels.judged
  tunnels.judged = { ok: false, fault: 'service' }
  onLatest = () => (tunnels.judged = granted)
  const er1 = await stage.dial('er1')
  const request = create(CreateFabricCircuitSchema, { ingressId: 'me', service: 'web' })
  const body = toBinary(CreateFabricCircuitSchema, request)
  er1.say({ contentType: 1000, sequence: 51, body })
  await settle()
  expect(routes(er1)).toHaveLength(1)
})

test('A dial is refused if it is not permitted at the latest commit, or if there is no leader', async () => {
  judged = { ok: false, fault: 'access' }
  const er1 = await stage.dial('er1')
  await dial(er1)
  onLatest = () => {
    throw new Problem('CLUSTER_NO_LEADER')
  }
  await dial(er1)
  expect(er1.ofType(20_002).map(({ headers }) => readInt32(headers, 1014))).toEqual([14, 14])
  expect(judgements).toBe(3)
})

describe('For a dial that cannot be routed yet, a controller that has just started', () => {
  const NEW_MS = 15_000
  const AWAITED_MS = 2000

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    hosts = [{ ...host, routerId: 'er2' }]
  })
  afterEach(() => vi.useRealTimers())

  const passes = async (ms: number): Promise<void> => {
    await vi.advanceTimersByTimeAsync(ms)
    await settle()
  }
  const refusals = (pipe: Pipe): number => pipe.ofType(20_002).length

  test('waits until the host’s router has connected and reported its links, and then creates the circuit', async () => {
    const er1 = await stage.dial('er1')
    await dial(er1)
    await passes(AWAITED_MS / 2)
    expect(refusals(er1)).toBe(0)
    const er2 = await comes()
    await passes(500)
    expect([routes(er1).length, routes(er2).length]).toEqual([1, 1])
  })

  test('waits only until its timeout', async () => {
    const er1 = await stage.dial('er1')
    await dial(er1)
    await passes(AWAITED_MS - 1)
    expect(refusals(er1)).toBe(0)
    await passes(1)
    expect(refusals(er1)).toBe(1)
  })

  test('does not wait if the service has no hosts, or if none of the hosts has the requested instance', async () => {
    for (const none of [[], [{ ...host, routerId: 'er2', instanceId: 'blue' }]]) {
      hosts = none
      const er1 = await stage.dial('er1')
      await dial(er1)
      expect(refusals(er1)).toBe(1)
    }
  })

  const comes = async (): Promise<Pipe> => {
    const er2 = await stage.dial('er2')
    const link = { id: 'l1', destRouterId: 'er1', protocol: 'tls', dialAddress: '', iteration: 1 }
    links.report('er2', { ...link, connections: [] })
    links.onAllReported('er2')
    return er2
  }

  test('queues some dials of a client, and immediately refuses further dials of this client', async () => {
    const er1 = await stage.dial('er1')
    for (let dialed = 0; dialed < 14; dialed += 1) await dial(er1)
    expect(refusals(er1), 'one client may use three quarters of the limit').toBe(2)
    judged = { ok: true, client: { ...client, identityId: 'i3' } }
    await dial(er1)
    expect(refusals(er1), 'another client is still accepted').toBe(2)
    await passes(AWAITED_MS)
    expect(refusals(er1)).toBe(15)
    judged = { ok: true, client }
    await dial(er1)
    expect(refusals(er1), 'the limit is available again').toBe(15)
  })

  test('dials no host if the client lost its right during the wait', async () => {
    const er1 = await stage.dial('er1')
    await dial(er1)
    handler.onSessionsEnded(new Set([client.sessionId]))
    const er2 = await comes()
    await passes(500)
    expect([refusals(er1), routes(er1).length, routes(er2).length]).toEqual([1, 0, 0])
  })

  test('dials no host if the client’s router disconnected during the wait', async () => {
    const er1 = await stage.dial('er1')
    await dial(er1)
    await passes(500)
    er1.destroy()
    await settle()
    await passes(500)
    const er2 = await comes()
    await passes(AWAITED_MS)
    expect(routes(er2)).toEqual([])
  })

  test('refuses it immediately once the initial period is over', async () => {
    nowMs += NEW_MS
    const er1 = await stage.dial('er1')
    await dial(er1)
    expect(refusals(er1)).toBe(1)
  })
})
