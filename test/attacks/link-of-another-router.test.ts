import { create, toBinary } from '@bufbuild/protobuf'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { PeerState, PeerStateChangesSchema } from '../../proto/gen/router_pb.ts'
import { encodeFrame } from '../../src/channel/frame.ts'
import { linkHelloMessage } from '../../src/channel/messages/links.ts'
import { routerSpiffeId } from '../../src/pki/spiffe.ts'
import { eventually, type ScriptedController, TestNetwork, trustDomain } from '../router/support.ts'
import { freePort } from '../support/ports.ts'

// The attack: a holder of a certificate of the network gets the link of another router: by dialing
// as that router, with a revoked certificate, or by listening instead of a dialed router. It then
// controls the traffic of the link.

let network: TestNetwork
let controller: ScriptedController
let port: number
const sockets: TLSSocket[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
  port = await freePort()
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await network.close()
})

async function start(): Promise<void> {
  const listener = `{binding: transport, bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"}`
  const dialer = '{binding: transport, healthyDialBackoff: {minRetryInterval: 20ms}}'
  const link = `link: {listeners: [${listener}], dialers: [${dialer}]}\n`
  await network.running([controller.address], link)
  await eventually(() => controller.isConnected).toBe(true)
}

/**
 * Dials a link as router2 with the certificate of `holder`. @returns whether a link was created.
 */
async function isLinked(
  holder: string,
  uris: readonly string[] = [],
  claimed: { readonly routerId?: string; readonly linkId?: string } = {},
): Promise<boolean> {
  const before = { refused: network.logged('link refused').length }
  const made = network.logged('link established').length
  const { certificatePem: cert, privateKeyPem: key } = await network.leaf(holder, uris, [])
  const socket = connect({
    host: '127.0.0.1',
    port,
    cert,
    key,
    ca: network.root.certificatePem,
    ALPNProtocols: ['ziti-link'],
  })
  socket.on('error', () => undefined)
  const ids = { linkId: `link of ${holder}`, routerId: 'router2', dialedId: 'router1', ...claimed }
  socket.write(encodeFrame(linkHelloMessage({ ...ids, dialedVersion: 'v2.0.0', iteration: 1 })))
  await eventually(
    () =>
      network.logged('link refused').length -
      before.refused +
      network.logged('link established').length -
      made,
  ).toBe(1)
  if (claimed.linkId === undefined) socket.destroy()
  sockets.push(socket)
  return network.logged('link established').length > made
}

test('a router with its own certificate cannot open a link under the ID of another router', async () => {
  await start()
  expect(await isLinked('router3')).toBe(false)
})

test('a certificate with the common name of a router opens no link if its SPIFFE ID names another router or a controller', async () => {
  await start()
  expect(await isLinked('router2', [routerSpiffeId(trustDomain, 'router3')])).toBe(false)
  expect(await isLinked('router2', ['spiffe://test.internal/controller/router2'])).toBe(false)
  expect(await isLinked('router2', [routerSpiffeId(trustDomain, 'router2')])).toBe(true)
})

test('a router whose certificate the controllers have stopped accepting cannot open a link', async () => {
  await start()
  controller.verifies = false
  expect(await isLinked('router2')).toBe(false)
  controller.verifies = true
  expect(await isLinked('router2')).toBe(true)
})

test('a router that uses another router’s link ID cannot open a link', async () => {
  await start()
  const linkId = 'the link of router2'
  expect(await isLinked('router2', [], { linkId })).toBe(true)
  expect(await isLinked('router3', [], { routerId: 'router3', linkId })).toBe(false)
  expect(await isLinked('router3', [], { routerId: 'router3', linkId: 'its own' })).toBe(true)
})

test('a router that listens at another router’s address gets no link', async () => {
  await start()
  const attacker = await TestNetwork.create(network, 'router3')
  const own = await attacker.controller('b')
  const place = await freePort()
  const listener = `{binding: transport, bind: "tls:127.0.0.1:${place}", advertise: "127.0.0.1:${place}"}`
  await attacker.running([own.address], `link: {listeners: [${listener}]}\n`)
  await eventually(() => own.isConnected).toBe(true)
  const listeners = [{ address: `tls:127.0.0.1:${place}`, protocol: 'tls', groups: [] }]
  // The attacker's own controller confirms every router that dials.
  own.verifies = true
  const changes = [{ id: 'router4', version: 'v2.0.0', state: PeerState.HEALTHY, listeners }]
  const message = create(PeerStateChangesSchema, { changes })
  controller.send({ contentType: 1050, body: toBinary(PeerStateChangesSchema, message) })
  await eventually(() => network.logged('no link to the router')).toHaveLength(1)
  expect(JSON.stringify(network.logged('no link to the router')[0]?.fields)).toContain(
    'its certificate belongs to another router',
  )
  expect(attacker.logged('link refused'), 'no hello was said').toEqual([])
  await attacker.close()
})
