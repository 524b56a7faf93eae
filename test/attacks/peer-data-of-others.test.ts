import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import { RouteSchema } from '../../proto/gen/router_pb.ts'
import { encodeBytesMap, readBytesMap } from '../../src/channel/header-maps.ts'
import { encodeInt32, encodeText } from '../../src/channel/headers.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { connectResponseHeaders } from '../../src/channel/messages/peer-data.ts'
import { CircuitHandler } from '../../src/fabric/circuits/circuit-handler.ts'
import { createCircuitTable } from '../../src/fabric/circuits/circuit-table.ts'
import { LinkTable } from '../../src/fabric/links/link-table.ts'
import { settle } from '../channel/pipe.ts'
import { RouterStage, upToDate } from '../fabric/stage.ts'
import { Tunnels } from '../fabric/tunnels.ts'

// The attack: a client learns the address of the host and its target from the response to its dial,
// or a stolen router pretends to a host that another identity dials.

const stage = new RouterStage()
afterEach(() => stage.channels.stop())

const key = {
  publicKey: 1003,
  appData: 1011,
  localAddress: 1110,
  remoteAddress: 1111,
  dialerId: 1115,
  dialerName: 1116,
} as const
const client = {
  sessionId: 'dial',
  apiSessionId: 'session',
  serviceId: 's1',
  identityId: 'mallory-id',
  identityName: 'mallory',
}
const host = {
  terminatorId: 't1',
  routerId: 'r1',
  hostId: 'i2',
  isMadeByRouter: false,
  binding: 'edge',
  address: 'at t1',
  peerData: new Map([
    [key.publicKey, encodeText('key of the host')],
    [1200, encodeText('whatever else its router has stored')],
  ]),
  ...({ cost: 0, precedence: 'default', instanceId: '' } as const),
}

test('Each circuit endpoint receives only the permitted data of the other endpoint from the controller', async () => {
  const { channels } = stage
  const connection = channels.connection.bind(channels)
  channels.add(
    new CircuitHandler({
      table: createCircuitTable('ctrl1', () => undefined),
      links: new LinkTable({
        owner: 'ctrl1',
        isBarred: () => false,
        isConnected: () => true,
        sendGone: () => undefined,
        onGone: () => undefined,
      }),
      log: { info: () => undefined, warn: () => undefined },
      connection,
      clock: systemClock,
      reads: upToDate,
      draw: () => 0,
      tunnels: new Tunnels(),
      clients: { judge: () => Promise.resolve({ ok: true, client }) },
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
    }),
  )
  const router = await stage.dial('r1')
  const forged = new Map([
    [key.appData, encodeText('for the host')],
    [key.dialerId, encodeText('id of ann')],
    [key.dialerName, encodeText('ann')],
  ])
  router.say({
    contentType: 20_218,
    sequence: 50,
    headers: new Map([
      ...([11, 14] as const).map((at) => [at, encodeText('token')] as const),
      [12, Buffer.concat([encodeInt32(1), encodeInt32(2), encodeText('aa')])],
      [10, encodeBytesMap(forged)],
    ]),
  })
  await settle()
  const [asked] = router.ofType(1005)
  const { circuitId, egress } = fromBinary(RouteSchema, asked?.body ?? new Uint8Array())
  const toHost = Object.entries(egress?.peerData ?? {})
  expect(toHost.map(([at, value]) => [Number(at), Buffer.from(value).toString()])).toEqual([
    [key.appData, 'for the host'],
    [key.dialerId, 'mallory-id'],
    [key.dialerName, 'mallory'],
  ])
  router.say({
    contentType: 1022,
    headers: new Map([
      [1101, encodeInt32(0)],
      [1102, Uint8Array.of(1)],
      [key.localAddress, encodeText('10.0.0.7:51000')],
      [key.remoteAddress, encodeText('10.0.0.9:5432')],
    ]),
    body: encodeText(circuitId),
  })
  await settle()
  const [answer] = router.ofType(20_219)
  const told = readBytesMap(answer?.headers ?? new Map(), 10) ?? new Map<number, Uint8Array>()
  expect([...told].map(([at, value]) => [at, Buffer.from(value).toString()])).toEqual([
    [key.publicKey, 'key of the host'],
  ])
})

test('Of the peer data of a host, a router forwards only the public key to its client', () => {
  const said = [1, key.publicKey, key.appData, key.localAddress, key.remoteAddress, 1200]
  const told = connectResponseHeaders(new Map(said.map((at) => [at, encodeText('said')])))
  expect([...told].map(([at]) => at)).toEqual([key.publicKey])
})
