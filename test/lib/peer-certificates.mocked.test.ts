import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { expect, test, vi } from 'vitest'

vi.mock('../../src/lib/runtime/unsupported-node.ts', () => ({
  unsupportedNodeReason: () => 'leaks',
}))

const { peerChainDer } = await import('../../src/lib/runtime/peer-certificates.ts')
const { issueLeaf, LEAF_LIFETIME_MS, validityStartingAt } =
  await import('../../src/pki/authority/authority.ts')
const { networkAuthorities } = await import('../support/authorities.ts')

test('on a Node version that leaks the memory of certificate chains, the chain of a peer is read without the call that leaks', async () => {
  const nowMs = Date.now()
  const { issuing, anchorsPem } = await networkAuthorities(nowMs)
  const { certificatePem, privateKeyPem } = await issueLeaf({
    issuer: issuing,
    commonName: 'client',
    uris: [],
    hosts: [],
    usages: ['client', 'server'],
    validity: validityStartingAt(nowMs, LEAF_LIFETIME_MS),
  })
  const cert = `${certificatePem}\n${anchorsPem()}`
  const server = createServer({
    cert: certificatePem,
    key: privateKeyPem,
    requestCert: true,
    rejectUnauthorized: false,
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({
    host: '127.0.0.1',
    port,
    rejectUnauthorized: false,
    cert,
    key: privateKeyPem,
  })
  client.on('error', () => undefined)
  try {
    const [socket] = (await once(server, 'secureConnection')) as [TLSSocket]
    const leaking = vi.spyOn(socket, 'getPeerX509Certificate')
    expect(peerChainDer(socket, 16)).toHaveLength(3)
    expect(leaking).not.toHaveBeenCalled()
  } finally {
    client.destroy()
    server.close()
  }
})
