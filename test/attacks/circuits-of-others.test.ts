import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  CircuitConfirmationSchema,
  FaultSchema,
  FaultSubject,
  type Route,
  RouteSchema,
  UnrouteSchema,
} from '../../proto/gen/router_pb.ts'
import { readBytesMap } from '../../src/channel/header-maps.ts'
import { encodeInt32, readText, encodeText } from '../../src/channel/headers.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { ClientAccessDecision } from '../../src/ports/router-clients.ts'
import { CircuitHandler } from '../../src/fabric/circuits/circuit-handler.ts'
import { createCircuitTable, type CircuitTable } from '../../src/fabric/circuits/circuit-table.ts'
import { createLinkHandler, closeLinkMessage } from '../../src/fabric/links/link-handler.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import { type Pipe, settle } from '../channel/pipe.ts'
import { Tunnels } from '../fabric/tunnels.ts'
import { RouterStage, upToDate } from '../fabric/stage.ts'

// The attack: a router ends, reroutes or gets information about circuits that do not run through
// it, makes circuits run through it, or replaces the host's key with its own in circuits that run
// through it.

const PUBLIC_KEY = 1003
const log = { info: () => undefined, warn: () => undefined }
const client = {
  sessionId: 'dial',
  apiSessionId: 'session',
  serviceId: 's1',
  identityId: 'i1',
  identityName: 'clerk',
}
const host = {
  terminatorId: 't1',
  routerId: 'host',
  hostId: 'i2',
  isMadeByRouter: false,
  binding: 'edge',
  address: 'at t1',
  ...({ cost: 0, precedence: 'default', instanceId: '', peerData: new Map() } as const),
}

let stage: RouterStage
let links: LinkTable
let circuits: CircuitTable
/** Terminators that their own router does not know. */
let invalid: string[]

beforeEach(() => {
  stage = new RouterStage()
  invalid = []
  const { channels } = stage
  const connection = channels.connection.bind(channels)
  circuits = createCircuitTable('ctrl1', (id, message) => connection(id)?.channel.send(message))
  links = new LinkTable({
    owner: 'ctrl1',
    isBarred: () => false,
    isConnected: (id) => connection(id) !== undefined,
    sendGone: (id, link) => connection(id)?.channel.send(closeLinkMessage(link)),
    onGone: (link) => handler.upkeep.onLinkGone(link),
  })
  const handler = new CircuitHandler({
    table: circuits,
    links,
    log,
    connection,
    reads: upToDate,
    clock: systemClock,
    draw: () => 0,
    tunnels: new Tunnels(),
    onInvalidHost: ({ terminatorId }) => invalid.push(terminatorId),
    clients: { judge: () => Promise.resolve({ ok: true, client } satisfies ClientAccessDecision) },
    hosts: {
      service: () => ({
        encryptionRequired: false,
        maxIdleTimeMs: 0,
        strategy: 'smartrouting',
        hosts: [host],
      }),
      routerCost: () => 10,
      isEndOnly: () => false,
    },
  })
  channels.add(handler)
  channels.add(
    createLinkHandler({
      table: links,
      log,
      isCertificateOf: () => false,
      onOtherFault: (from, fault) => handler.upkeep.onFault(from, fault),
    }),
  )
})
afterEach(() => stage.channels.stop())

function linked(id: string, from: string, to: string): void {
  links.report(from, {
    id,
    destRouterId: to,
    protocol: 'tls',
    dialAddress: '',
    iteration: 1,
    connections: [],
  })
  for (const end of [from, to]) links.measured(end, id, 1_000_000)
}

/**
 * The routers: of the client, on the path, of the host, and the stolen one, which is not on the
 * path.
 */
async function dialed(): Promise<Record<'near' | 'middle' | 'far' | 'stolen', Pipe>> {
  const near = await stage.dial('client')
  const [middle, far] = [await stage.dial('middle'), await stage.dial('host')]
  const stolen = await stage.dial('stolen')
  linked('l1', 'client', 'middle')
  linked('l2', 'middle', 'host')
  const headers: ChannelMessage['headers'] = new Map([
    ...([11, 14] as const).map((key) => [key, encodeText('token')] as const),
    [12, Buffer.concat([encodeInt32(1), encodeInt32(2), encodeText('aa')])],
  ])
  near.say({ contentType: 20_218, sequence: 50, headers })
  await settle()
  return { near, middle, far, stolen }
}

const routeOf = (pipe: Pipe): Route | undefined =>
  pipe.ofType(1005).map(({ body }) => fromBinary(RouteSchema, body))[0]

async function answer(pipe: Pipe, id: string, key: string): Promise<void> {
  const headers = new Map([
    [1101, encodeInt32(0)],
    [1102, Uint8Array.of(1)],
    [PUBLIC_KEY, encodeText(key)],
  ])
  pipe.say({ contentType: 1022, headers, body: encodeText(id) })
  await settle()
}

async function laid() {
  const pipes = await dialed()
  const id = routeOf(pipes.near)?.circuitId ?? ''
  for (const pipe of [pipes.far, pipes.near, pipes.middle])
    await answer(pipe, id, 'key of the host')
  expect(circuits.get(id)?.routerIds).toEqual(['client', 'middle', 'host'])
  return { ...pipes, id }
}

const unroutes = (pipe: Pipe): string[] =>
  pipe.ofType(1006).map(({ body }) => fromBinary(UnrouteSchema, body).circuitId)

async function fault(pipe: Pipe, subject: FaultSubject, id: string): Promise<void> {
  const body = toBinary(FaultSchema, create(FaultSchema, { subject, id, iteration: 9 }))
  pipe.say({ contentType: 1004, body })
  await settle()
}

test.each([
  ['ingress', FaultSubject.INGRESS],
  ['egress', FaultSubject.EGRESS],
])(
  'a router cannot end a circuit that it does not carry by reporting a fault of the circuit’s %s',
  async (_, subject) => {
    const { stolen, near, id } = await laid()
    await fault(stolen, subject, id)
    expect(circuits.get(id)).toBeDefined()
    expect(unroutes(near)).toEqual([])
  },
)

test('a router cannot reroute a circuit that it does not carry', async () => {
  const { stolen, near, id } = await laid()
  await fault(stolen, FaultSubject.FORWARD, id)
  expect(near.ofType(1005)).toHaveLength(1)
  expect(unroutes(stolen)).toEqual([id])
})

test('a router that confirms circuits does not learn which circuits other routers carry', async () => {
  const { stolen, near, id } = await laid()
  const asked = create(CircuitConfirmationSchema, { circuitIds: [id, 'a guess'] })
  for (const pipe of [stolen, near]) {
    pipe.say({ contentType: 1034, body: toBinary(CircuitConfirmationSchema, asked) })
  }
  await settle()
  expect(unroutes(stolen)).toEqual([id, 'a guess'])
  expect(unroutes(near)).toEqual(['a guess'])
})

test('a router cannot end a link between other routers', async () => {
  const { stolen, id } = await laid()
  await fault(stolen, FaultSubject.LINK, 'l2')
  expect(circuits.get(id)?.linkIds).toEqual(['l1', 'l2'])
  expect(links.get('l2')).toBeDefined()
})

test('a router cannot reroute circuits by reporting a link between other routers, one of which is disconnected', async () => {
  const { middle, stolen, near, id } = await laid()
  middle.destroy()
  await settle()
  expect(links.get('l2')).toBeUndefined()
  await fault(stolen, FaultSubject.LINK, 'l2')
  expect(circuits.get(id)).toBeDefined()
  expect(unroutes(near)).toEqual([])
})

test('a router cannot respond to route messages that were sent to other routers', async () => {
  const { stolen, near } = await dialed()
  const id = routeOf(near)?.circuitId ?? ''
  await answer(stolen, id, 'key of the stolen one')
  expect(near.ofType(20_219)).toEqual([])
  expect(unroutes(stolen)).toEqual([id])
})

test('an intermediate router cannot replace the encryption key of the host', async () => {
  const { near, middle, far } = await dialed()
  const id = routeOf(near)?.circuitId ?? ''
  await answer(far, id, 'key of the host')
  await answer(near, id, '')
  await answer(middle, id, 'key of the stolen one')
  const [reply] = near.ofType(20_219)
  expect(readText(reply?.headers ?? new Map(), 11)).toBe(id)
  const told = readBytesMap(reply?.headers ?? new Map(), 10)
  expect(Buffer.from(told?.get(PUBLIC_KEY) ?? []).toString()).toBe('key of the host')
})

test('an intermediate router cannot cause the removal of another router’s terminator by reporting it as invalid', async () => {
  const { near, middle, far } = await dialed()
  const refuse = async (pipe: Pipe, attempt: number): Promise<void> => {
    const headers = new Map([
      [1101, encodeInt32(attempt)],
      [1104, Uint8Array.of(1)],
    ])
    const id = routeOf(near)?.circuitId ?? ''
    pipe.say({ contentType: 1022, headers, body: encodeText(id) })
    await settle()
  }
  await refuse(middle, 0)
  expect(invalid).toEqual([])
  await refuse(far, 1)
  expect(invalid).toEqual(['t1'])
})

test('a router cannot attract circuits by reporting links whose latency no other router has measured', async () => {
  const { near, stolen } = await dialed()
  for (const to of ['client', 'host']) {
    const id = `false-${to}`
    links.report('stolen', {
      id,
      destRouterId: to,
      protocol: 'tls',
      dialAddress: '',
      iteration: 1,
      connections: [],
    })
    for (let times = 0; times < 2; times += 1) links.measured('stolen', id, 0)
  }
  near.say({
    contentType: 20_218,
    sequence: 51,
    headers: new Map([[12, Buffer.concat([encodeInt32(1), encodeInt32(2), encodeText('aa')])]]),
  })
  await settle()
  expect(near.ofType(1005)).toHaveLength(2)
  expect(stolen.ofType(1005)).toEqual([])
})
