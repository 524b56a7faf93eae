import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'

import { peerCertificateChain } from '../../src/api/http/transport/peer-certificate-chain.ts'
import {
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { newCa } from '../support/authorities.ts'

// The attack: without a log-in, anyone can present certificates and choose their size.

test('an unauthenticated client cannot make a controller parse a certificate chain beyond the limit', async () => {
  const nowMs = Date.now()
  const issuer = await newCa('stranger', nowMs)
  const names = Array.from({ length: 200 }, (_, at) => `https://${'a'.repeat(180)}/${at}`)
  const { certificatePem: cert, privateKeyPem: key } = await issueLeaf({
    issuer,
    commonName: 'stranger',
    uris: names,
    hosts: [],
    usages: ['client', 'server'],
    validity: validityStartingAt(nowMs, LEAF_LIFETIME_MS),
  })
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, cert, key })
  client.on('error', () => undefined)
  try {
    const [socket] = (await once(server, 'secureConnection')) as [TLSSocket]
    expect(peerCertificateChain(socket)).toBeNull()
  } finally {
    client.destroy()
    server.close()
  }
})
