import { once } from 'node:events'
import { expect, test } from 'vitest'

import { meshLimits } from '../../src/cluster/mesh/limits.ts'
import { attackedMesh } from './support/mesh-port.ts'

// An attacker opens a connection, drops it and opens the next, so that it never holds many: each
// costs the thread behind the port a handshake. Routers and peers are paced by one mechanism; here
// it is the port for peers.

const mesh = await attackedMesh()

test('connections beyond the rate limit of their source are closed immediately, and other sources are served', async () => {
  // It comes before all others, so that the time for a handshake is over for it first.
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
  // Fewer than it may hold, so nothing but their pace ends them before that time.
  const [first] = await Promise.race([
    Promise.any(more.map(async (socket) => await once(socket, 'close').then(() => ['more']))),
    once(elder, 'close').then(() => ['elder']),
  ])
  expect(first).toBe('more')
  expect((await mesh.tls(mesh.member, '127.0.0.11')).authorized).toBe(true)
})
