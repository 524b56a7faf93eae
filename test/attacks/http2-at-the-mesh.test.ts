import { once } from 'node:events'
import { type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { describe, expect, test } from 'vitest'

import { meshLimits } from '../../src/cluster/mesh/limits.ts'
import { controllerIdentity, issueIdentity, TRUST_DOMAIN } from '../cluster/mesh-fixture.ts'
import {
  answerPings,
  attackedMesh,
  frame,
  isOver,
  PING,
  PREFACE,
  SETTINGS,
} from './support/mesh-port.ts'

// The attack: every certificate of the network chains to the CA of its controllers. A holder of any
// of them could send HTTP/2 to the thread that leads the cluster: opened and reset streams, pings
// and settings cost the thread far more than the attacker.

const mesh = await attackedMesh()

/**
 * The first bytes from the server, which are its HTTP/2 settings; '' when it closes the connection
 * instead.
 */
async function greeting(socket: TLSSocket): Promise<string> {
  // The server may have closed the connection directly after the handshake.
  if (socket.destroyed) return ''
  socket.write(PREFACE)
  socket.write(frame(SETTINGS, Buffer.alloc(0)))
  const first = await Promise.race([
    once(socket, 'data').then(([bytes]: Buffer[]) => bytes),
    once(socket, 'close').then(() => undefined),
  ]).catch(() => undefined)
  return first?.[3] === SETTINGS ? 'settings' : ''
}

async function begun(): Promise<TLSSocket> {
  const socket = await mesh.tls(mesh.member)
  expect(await greeting(socket)).toBe('settings')
  answerPings(socket)
  return socket
}

describe('a mesh connection with the certificate of', () => {
  test.each([
    ['an identity', [`spiffe://${TRUST_DOMAIN}/identity/i1`]],
    ['an API session of an identity', [`spiffe://${TRUST_DOMAIN}/identity/i1/apiSession/s1`]],
    ['a router', [`spiffe://${TRUST_DOMAIN}/router/r1`]],
    ['a controller of another network', ['spiffe://attacker.example/controller/b']],
    ['a peer without a SPIFFE name', []],
  ])('%s is closed after the handshake', async (_whose, uris) => {
    const identity = await issueIdentity(mesh.authority, { commonName: 'b', uris })
    expect(await greeting(await mesh.tls(identity))).toBe('')
  })

  test('a member, or of a controller that requests admission, continues with HTTP/2', async () => {
    expect(await greeting(await mesh.tls(mesh.member))).toBe('settings')
    const newcomer = await controllerIdentity(mesh.authority, 'new')
    expect(await greeting(await mesh.tls(newcomer))).toBe('settings')
  })
})

test('controllers that are not members share a few connections, and cannot displace connections of members', async () => {
  const { meshSessionsPerStrangerMax, meshStrangersMax } = meshLimits
  const member = await begun()
  const stranger = await controllerIdentity(mesh.authority, 'stranger')
  const held: TLSSocket[] = []
  for (let at = 0; at <= meshSessionsPerStrangerMax; at += 1) held.push(await mesh.tls(stranger))
  const [first] = held
  if (first !== undefined) expect(await isOver(first)).toBe(true)
  const others = await Promise.all(
    Array.from({ length: meshStrangersMax }, (_, at) =>
      controllerIdentity(mesh.authority, `other-${at}`),
    ),
  )
  const sockets: TLSSocket[] = []
  for (const identity of others) sockets.push(await mesh.tls(identity))
  const greetings = await Promise.all(sockets.map(greeting))
  expect(greetings.filter((said) => said !== '').length).toBeLessThan(meshStrangersMax)
  expect(member.destroyed).toBe(false)
  for (const socket of [...held, ...sockets]) socket.destroy()
})

describe('a mesh connection, even that of a member, is closed if it', () => {
  test.each([
    ['pings', frame(PING, Buffer.alloc(8))],
    ['settings', frame(SETTINGS, Buffer.alloc(0))],
  ])('sends %s faster than members do', async (_what, control) => {
    const socket = await begun()
    const burst = Buffer.concat(Array.from({ length: meshLimits.meshControlsBurst }, () => control))
    // A busy port reads the messages late, when more have arrived: the attacker continues.
    const flood = setInterval(() => socket.write(burst), 100)
    socket.write(Buffer.concat([burst, burst]))
    expect(await isOver(socket)).toBe(true)
    clearInterval(flood)
  })

  test.each([
    ['resets them', (stream: ClientHttp2Stream) => stream.close(constants.NGHTTP2_CANCEL)],
    ['waits for their responses', (stream: ClientHttp2Stream) => stream.resume()],
  ])('opens one stream after another and %s', async (_how, then) => {
    const socket = await mesh.tls(mesh.member)
    const session = connect('https://mesh.flotilla', { createConnection: () => socket })
    session.on('error', () => undefined)
    let opened = 0
    const flood = setInterval(() => {
      if (session.destroyed || session.closed) return
      const stream = session.request({ ':method': 'POST', ':path': '/x' }, { endStream: true })
      stream.on('error', () => undefined)
      then(stream)
      opened += 1
    }, 2)
    // If the server states a reason, the session emits an error before it closes; `once` would
    // throw that error.
    await new Promise<void>((resolve) => session.once('close', resolve))
    clearInterval(flood)
    expect(opened).toBeGreaterThanOrEqual(meshLimits.meshStreamsBurst)
  })
})
