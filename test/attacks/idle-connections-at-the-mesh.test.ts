import type { Socket } from 'node:net'
import { expect, test } from 'vitest'

import { meshLimits } from '../../src/cluster/mesh/limits.ts'
import { attackMesh } from '../cluster/mesh-attacker.ts'
import { helloOf } from '../cluster/mesh-fixture.ts'
import { encodeRaftHello, MessageEncoder } from '../../src/cluster/message-codec.ts'
import { attackedMesh } from './support/mesh-port.ts'
import { until } from './support/listener.ts'

// The attack: an attacker without credentials opens connections to the port for peers and sends
// nothing, as many and as fast as it can: each uses a file descriptor of the controller, and
// processor time of the thread that leads the cluster.

const mesh = await attackedMesh()

/** Number of connections of one source that stay open when the others have been closed. */
function held(sockets: readonly { readonly destroyed: boolean }[]): number {
  return sockets.filter(({ destroyed }) => !destroyed).length
}

/**
 * Number of connections that were closed before their time for a handshake ended, and thus for
 * another reason.
 */
function closedEarly(sockets: readonly Socket[]): () => number {
  const { meshHandshakeTimeoutMs } = meshLimits
  const begunMs = performance.now()
  let count = 0
  for (const socket of sockets) {
    socket.once('close', () => {
      if (performance.now() - begunMs < meshHandshakeTimeoutMs) count += 1
    })
  }
  return () => count
}

test('one source address can hold a limited number of idle connections, and a member at the same address can still connect', async () => {
  const { meshHandshakesPerSourceMax } = meshLimits
  const count = meshHandshakesPerSourceMax * 3
  const sockets = Array.from({ length: count }, () => mesh.tcp('127.0.0.2').resume())
  const early = closedEarly(sockets)
  await until(() => held(sockets) <= meshHandshakesPerSourceMax)
  expect(early()).toBeGreaterThan(0)
  // The connection that was opened first has waited longest and is closed first.
  expect(sockets.at(-1)?.destroyed).toBe(false)
  const peer = await mesh.tls(mesh.member, '127.0.0.2')
  expect(peer.authorized).toBe(true)
})

test('many source addresses together can hold a limited number of idle connections, and a member can still connect', async () => {
  const { meshHandshakesMax } = meshLimits
  const sources = Array.from({ length: 8 }, (_, at) => `127.0.1.${at + 1}`)
  const sockets = sources.flatMap((source) =>
    Array.from({ length: 30 }, () => mesh.tcp(source).resume()),
  )
  const early = closedEarly(sockets)
  await until(() => held(sockets) <= meshHandshakesMax)
  expect(early()).toBeGreaterThan(0)
  const vote = new MessageEncoder().encode({
    type: 'voteRequest',
    from: 'b',
    to: 'a',
    term: 3,
    pre: true,
    transfer: false,
    last: { term: 2, index: 5 },
  })
  const before = mesh.victim.raft.length
  const spoken = attackMesh({
    port: mesh.victim.port,
    caPem: mesh.authority.caPem,
    identity: mesh.member,
    frames: [encodeRaftHello(helloOf('b')), vote],
  })
  await until(() => mesh.victim.raft.length > before)
  mesh.victim.mesh.stop()
  await spoken
})
