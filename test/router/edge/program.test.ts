import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  ApiSessionAddedSchema,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
} from '../../../proto/gen/router_pb.ts'
import { encodeInt32, readInt32 } from '../../../src/channel/headers.ts'
import { circuitResponseMessage } from '../../../src/channel/messages/circuit-requests.ts'
import { buildRouteMessages } from '../../../src/fabric/circuits/route.ts'
import {
  readEdgeRouterHello,
  controllerHelloMessage,
} from '../../../src/channel/messages/control.ts'
import { parseCertificate } from '../../../src/pki/certificate.ts'
import { freePort } from '../../support/ports.ts'
import { eventually, type ScriptedController, TestNetwork } from '../support.ts'
import { type Person, serviceToken, TestClient } from './support.ts'
import { unrouteMessage } from '../../../src/channel/messages/circuits.ts'

// Goal: a host and a client at one of our routers exchange bytes through it, over circuits that a
// controller creates. Method: the whole router program, real channels, and a controller whose
// answers the test gives, with the messages that our controllers use.

let network: TestNetwork
let controller: ScriptedController
let port: number
const clients: TestClient[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
  port = await freePort()
  const address = `bind: "tls:127.0.0.1:${port}", options: {advertise: "router.test:${port}"}`
  await network.running([controller.address], `edge: {}\nlisteners: [{binding: edge, ${address}}]`)
  await eventually(() => controller.isConnected).toBe(true)
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.channel.close('over')
  await network.close()
})

async function connected(name: string): Promise<TestClient> {
  const key = await network.leaf(name, [], [])
  const person: Person = { identityId: name, sessionId: `${name}1`, token: `1.${name}.mac`, key }
  const message = create(ApiSessionAddedSchema, {
    apiSessions: [
      {
        id: person.sessionId,
        token: person.token,
        identityId: name,
        certFingerprints: [parseCertificate(key.certificatePem).sha1],
      },
    ],
  })
  controller.send({ contentType: 20_200, body: toBinary(ApiSessionAddedSchema, message) })
  const client = await TestClient.open(port, person)
  clients.push(client)
  expect(client.isAdmitted).toBe(true)
  return client
}

/** @returns the ID of the terminator. */
async function hosting(host: TestClient): Promise<string> {
  const flags = [1012, 1024].map((key) => [key, Uint8Array.of(1)] as const)
  await host.request(60_790, 1, serviceToken('bind'), flags)
  await eventually(() => controller.ofType(20_216)).toHaveLength(1)
  const [asked] = controller.ofType(20_216)
  const { address } = fromBinary(CreateTerminatorV2Schema, asked?.body ?? new Uint8Array())
  const answer = create(CreateTerminatorV2AnswerSchema, { terminatorId: address })
  controller.send({ contentType: 20_217, body: toBinary(CreateTerminatorV2AnswerSchema, answer) })
  await eventually(() => host.ofType(60_800)).toHaveLength(1)
  host.onMessage = (message) => {
    if (message.contentType !== 60_787) return
    host.reply(message, 60_788, encodeInt32(readInt32(message.headers, 1012) ?? 0))
  }
  return address
}

/** The circuit of a client to the terminator, as one of our controllers creates it. */
async function dialed(client: TestClient, id: number, address: string): Promise<void> {
  const connecting = client.request(60_783, id, serviceToken('dial'))
  const made = controller.ofType(1022).length
  await eventually(() => controller.ofType(20_218).length).toBe(made + 1)
  const request = controller.ofType(20_218).at(-1)
  const ends = { id: `circuit-${id}`, ingress: `in-${id}`, egress: `out-${id}` }
  const path = { routerIds: [network.routerId], links: [], cost: 0 }
  const dial = { binding: 'edge', address, peerData: new Map<number, Uint8Array>() }
  const terms = { attempt: 0, timeoutMs: 10_000, tags: {}, dial }
  for (const route of buildRouteMessages(ends, path, terms)) controller.send(route)
  await eventually(() => controller.ofType(1022).length).toBe(made + 1)
  expect(controller.ofType(1022).at(-1)?.headers.has(1102), 'the host was reached').toBe(true)
  if (request === undefined) throw new Error('nothing was asked for')
  const circuit = { circuitId: ends.id, ingressAddress: ends.ingress, tags: {} }
  controller.channel?.reply(
    request,
    circuitResponseMessage(request, { ...circuit, peerData: new Map() }),
  )
  expect((await connecting).contentType).toBe(60_784)
}

test('The router reports its client addresses to controllers', async () => {
  const reply = await controller.channel?.request(controllerHelloMessage('v2.0.0'))
  expect(readEdgeRouterHello(reply?.body ?? new Uint8Array()).protocols).toEqual({
    tls: `tls://router.test:${port}`,
  })
})

test('A host and a client exchange bytes in both directions; after the host has finished, the client can send data until it closes the connection', async () => {
  const [host, client] = [await connected('host'), await connected('ann')]
  await dialed(client, 7, await hosting(host))
  const connectionId = (readInt32(host.ofType(60_787)[0]?.headers ?? new Map(), 1012) ?? 0) >>> 0
  client.send(60_786, 7, 'hello')
  await eventually(() => host.textsOf(connectionId)).toEqual(['hello'])
  const large = Buffer.alloc(100_000, 'x').toString()
  for (let sent = 0; sent < 60; sent += 1) host.send(60_786, connectionId, large)
  await eventually(() => client.textsOf(7).length).toBe(60)
  expect(client.textsOf(7).every((text) => text === large)).toBe(true)
  host.send(60_786, connectionId, '', [[1010, encodeInt32(1)]])
  client.send(60_786, 7, 'still there')
  await eventually(() => host.textsOf(connectionId)).toEqual(['hello', 'still there'])
  client.send(60_785, 7)
  await eventually(() => host.ofType(60_785, connectionId)).toHaveLength(1)
  await eventually(() => controller.ofType(1004).length).toBeGreaterThan(0)
})

test('A circuit that a controller removes is closed at both endpoints', async () => {
  const [host, client] = [await connected('host'), await connected('ann')]
  await dialed(client, 7, await hosting(host))
  controller.send(unrouteMessage('circuit-7', true))
  await eventually(() => client.ofType(60_785, 7)).toHaveLength(1)
  await eventually(() => host.ofType(60_785)).toHaveLength(1)
})

test('When a client disconnects, its circuits end at the host', async () => {
  const [host, client] = [await connected('host'), await connected('ann')]
  await dialed(client, 7, await hosting(host))
  client.channel.close('gone')
  await eventually(() => host.ofType(60_785)).toHaveLength(1)
})
