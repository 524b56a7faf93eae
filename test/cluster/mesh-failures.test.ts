import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { expect, test } from 'vitest'

import { controllerIdentity, createAuthority, memberOf, startMesh, until } from './mesh-fixture.ts'

test('a peer that closes every connection causes only few log lines, even with varying errors', async () => {
  let knocks = 0
  const authority = await createAuthority()
  const [a, b] = [
    await controllerIdentity(authority, 'a'),
    await controllerIdentity(authority, 'b'),
  ]
  // Simulates a rejected certificate: with TLS 1.3, the client notices the rejection only after it
  // has completed its part of the handshake.
  const identity = { cert: b.certificatePem, key: b.privateKeyPem, ALPNProtocols: ['h2'] }
  const server = createServer(identity, (socket) => {
    knocks += 1
    socket.on('error', () => undefined)
    socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { mesh, log } = await startMesh('a', a, [memberOf('b', b, `127.0.0.1:${port}`)])
  try {
    await until('it was tried often', () => knocks >= 12)
    const told = log.lines.filter((line) => line.includes('no connection to b'))
    expect(told.length).toBeGreaterThan(0)
    expect(told.length).toBeLessThanOrEqual(3)
  } finally {
    mesh.stop()
    server.close()
  }
})
