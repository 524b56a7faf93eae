import { once } from 'node:events'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { afterEach, expect, test } from 'vitest'

import { encodeFrame } from '../../src/channel/frame.ts'
import { encodeText } from '../../src/channel/headers.ts'
import { channelContentType } from '../../src/channel/numbers.ts'
import { controllerSpiffeId } from '../../src/pki/spiffe.ts'
import { EDGE_PROTOCOL, edgeHeaderKey, edgeContentType } from '../../src/channel/messages/edge.ts'
import { edgeLimits } from '../../src/router/edge/limits.ts'
import { BearerBench } from '../router/edge/bearers.ts'
import { EdgeBench, eventually, type Person } from '../router/edge/support.ts'
import { trustDomain } from '../router/support.ts'

// The attack: strangers connect to a router with any certificate, present an unknown token, and
// disconnect immediately. If the router kept each connection until it stops looking for the
// session, the strangers would fill its memory, and it would refuse clients whose session a
// controller is about to report.

const STRANGERS_AT_A_TIME = 16
/** Strangers come from many addresses, so that the limits of one source do not stop them. */
const SOURCES = 200

let edge: EdgeBench | null = null
let strangers = 0
afterEach(async () => {
  await edge?.close()
  edge = null
})

test('a client that disconnects frees its slot among the clients whose session the router does not know yet', async () => {
  const bench = await EdgeBench.open({ options: ', lookupApiSessionTimeout: 1h' })
  edge = bench
  const ann = await bench.person('ann')
  let begun = 0
  const work = async (): Promise<void> => {
    while (begun < edgeLimits.apiSessionWaitersMax) {
      begun += 1
      await comeAndGo(bench, ann)
    }
  }
  await Promise.all(Array.from({ length: STRANGERS_AT_A_TIME }, work))
  const connecting = bench.connect(ann)
  // The router has read Ann's hello, because it has handled two connections that began later.
  for (let others = 0; others < 2; others += 1) await bench.connect(ann, { token: '' })
  bench.controller.tellSessions([ann])
  expect((await connecting).isAdmitted).toBe(true)
})

test('when a client disconnects, the router stops waiting for the key that signed the client’s token', async () => {
  const { bearers, waiting } = await openBearers()
  const ann = await bearers.person('ann')
  const stranger = strangerAt(bearers.bench, ann, await tokenOfUnknownKey(bearers, ann))
  await eventually(waiting).toEqual({ begun: 1, now: 1 })
  stranger.destroy()
  await eventually(waiting).toEqual({ begun: 1, now: 0 })
})

test('when a client disconnects, the router stops waiting for the key that signed the client’s renewed token', async () => {
  const { bearers, waiting } = await openBearers()
  const ann = await bearers.person('ann')
  const client = await bearers.bench.connect(ann)
  const token = await tokenOfUnknownKey(bearers, ann)
  client.channel.send({ contentType: edgeContentType.updateToken, body: encodeText(token) })
  await eventually(waiting).toEqual({ begun: 1, now: 1 })
  client.channel.close('left')
  await eventually(waiting).toEqual({ begun: 1, now: 0 })
})

async function comeAndGo(bench: EdgeBench, person: Person): Promise<void> {
  const socket = strangerAt(bench, person, 'a session of nobody')
  await once(socket, 'secureConnect')
  socket.end()
  await once(socket, 'close')
}

/** A connection that has sent its hello. */
function strangerAt(bench: EdgeBench, { key }: Person, token: string): TLSSocket {
  const [port = 0] = bench.edge.ports
  strangers += 1
  const options: ConnectionOptions & { readonly localAddress: string } = {
    host: '127.0.0.1',
    port,
    localAddress: `127.0.0.${2 + (strangers % SOURCES)}`,
    ALPNProtocols: [EDGE_PROTOCOL],
    rejectUnauthorized: false,
    cert: key.certificatePem,
    key: key.privateKeyPem,
  }
  const socket = connect(options)
  socket.on('error', () => undefined)
  socket.resume()
  socket.write(
    encodeFrame({
      contentType: channelContentType.hello,
      sequence: -1,
      headers: new Map([[edgeHeaderKey.sessionToken, encodeText(token)]]),
      body: encodeText('stranger'),
    }),
  )
  return socket
}

/**
 * A router with OIDC clients, with counts of the clients that have begun to wait for its data model
 * and of those that still wait.
 */
async function openBearers() {
  const bearers = await BearerBench.open('1h')
  edge = bearers.bench
  const { model } = edge
  const onChanged = model.onChanged.bind(model)
  const waits = { begun: 0, now: 0 }
  model.onChanged = (listener) => {
    const stop = onChanged(listener)
    waits.begun += 1
    waits.now += 1
    return () => {
      waits.now -= 1
      return stop()
    }
  }
  return { bearers, waiting: () => waits }
}

async function tokenOfUnknownKey(bearers: BearerBench, person: Person): Promise<string> {
  const uris = [controllerSpiffeId(trustDomain, 'ctrl2')]
  return await bearers.token(person, {}, await bearers.bench.network.leaf('ctrl2', uris, []))
}
