import { once } from 'node:events'
import { expect, test } from 'vitest'

import { meshLimits } from '../../src/cluster/mesh/limits.ts'
import { attackedMesh } from './support/mesh-port.ts'

// The attack: an attacker opens a connection, closes it and opens the next, so that it never has
// many: each handshake costs processor time of the thread that listens. One mechanism limits the
// rates of routers and peers; this file tests it at the port for peers.

const mesh = await attackedMesh()

test('connections beyond the rate limit of their source are closed immediately, and other sources are served', async () => {
  // Opened before all others, so that its handshake timeout ends first.
  const elder = mesh.tcp('127.0.0.10').resume()
  await once(elder, 'connect')
  const attacker = '127.0.0.9'
  for (let at = 0; at < meshLimits.meshConnectionsBurst; at += 16) {
    const some = Array.from({ length: 16 }, () => mesh.tcp(attacker).resume())
    await Promise.all(some.map((socket) => once(socket, 'connect')))
    for (const socket of some) socket.destroy()
  }
  const more = Array.from({ length: meshLimits.meshHandshakesPerSourceMax }, () =>
    mesh.tcp(attacker).resume(),
  )
  // Fewer than the maximum of open connections, so only the rate limit closes one before the
  // handshake timeout.
  const [first] = await Promise.race([
    Promise.any(more.map(async (socket) => await once(socket, 'close').then(() => ['more']))),
    once(elder, 'close').then(() => ['elder']),
  ])
  expect(first).toBe('more')
  expect((await mesh.tls(mesh.member, '127.0.0.11')).authorized).toBe(true)
})
