import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import {
  PEER_CHAIN_BYTES_MAX,
  peerChainDer,
  peerLeafDer,
  peerLeafSha256,
} from '../../src/lib/runtime/peer-certificates.ts'
import {
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { type Certificate, parseCertificates } from '../../src/pki/certificate.ts'
import { networkAuthorities, newCa } from '../support/authorities.ts'

// Method: real handshakes with a server that trusts no authority, as in a listener for clients of
// any CA.

const nowMs = Date.now()
const { issuing, anchorsPem } = await networkAuthorities(nowMs)
const stranger = await newCa('stranger', nowMs)
const leafOf = async (uris: readonly string[]) =>
  await issueLeaf({
    issuer: issuing,
    commonName: 'client',
    uris,
    hosts: [],
    usages: ['client', 'server'],
    validity: validityStartingAt(nowMs, LEAF_LIFETIME_MS),
  })
const ordinary = await leafOf([])
const [leaf] = parseCertificates(ordinary.certificatePem)
const [intermediate] = parseCertificates(issuing.certificatePem)
const [root] = parseCertificates(anchorsPem())
const [foreign] = parseCertificates(stranger.certificatePem)

const accepted: TLSSocket[] = []
const server = createServer(
  {
    cert: ordinary.certificatePem,
    key: ordinary.privateKeyPem,
    requestCert: true,
    rejectUnauthorized: false,
  },
  (socket) => accepted.push(socket.on('error', () => undefined)),
)
beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  for (const socket of accepted) socket.destroy()
  server.close()
})

/** Reads the certificates that the server receives from a client. */
async function seenOf<T>(
  presented: readonly Certificate[],
  privateKeyPem: string,
  look: (socket: TLSSocket) => T,
): Promise<T> {
  const { port } = server.address() as AddressInfo
  const isAccepted = once(server, 'secureConnection') as Promise<[TLSSocket]>
  const client = connect({
    host: '127.0.0.1',
    port,
    rejectUnauthorized: false,
    ...(presented.length === 0 ? {} : { cert: presented.map(({ pem }) => pem).join('\n') }),
    key: privateKeyPem,
  })
  client.on('error', () => undefined)
  const [socket] = await isAccepted
  try {
    return look(socket)
  } finally {
    client.destroy()
  }
}

const chainOf = (socket: TLSSocket) =>
  peerChainDer(socket, 16)?.map((der) => Buffer.from(der).toString('hex')) ?? null
const hexOf = (certificates: readonly Certificate[]) =>
  certificates.map(({ der }) => Buffer.from(der).toString('hex'))

describe('the certificates that a peer presents', () => {
  test('are returned in the order in which they were presented', async () => {
    for (const others of [
      [],
      [intermediate],
      [intermediate, root],
      [root, intermediate],
      [foreign, intermediate],
    ]) {
      const seen = await seenOf([leaf, ...others], ordinary.privateKeyPem, chainOf)
      expect(seen).toEqual(hexOf([leaf, ...others]))
    }
  })

  test('are limited to the requested number', async () => {
    const look = (socket: TLSSocket) => peerChainDer(socket, 2)?.length
    const presented = [leaf, intermediate, root]
    expect(await seenOf(presented, ordinary.privateKeyPem, look)).toBe(2)
  })

  test('consist of one certificate if it is self-signed', async () => {
    expect(await seenOf([foreign], stranger.privateKeyPem, chainOf)).toEqual(hexOf([foreign]))
  })

  test('include the leaf, whose bytes and digest can be read separately', async () => {
    const look = (socket: TLSSocket) => [peerLeafDer(socket), peerLeafSha256(socket)]
    const seen = await seenOf([leaf, intermediate], ordinary.privateKeyPem, look)
    expect(seen).toEqual([leaf.der, leaf.sha256])
  })

  test('are null if the client presents none, and after the connection has closed', async () => {
    const look = (socket: TLSSocket) => [
      chainOf(socket),
      peerLeafDer(socket),
      peerLeafSha256(socket),
    ]
    expect(await seenOf([], ordinary.privateKeyPem, look)).toEqual([null, null, ''])
    const afterEnd = (socket: TLSSocket) => look(socket.destroy())
    const seen = await seenOf([leaf], ordinary.privateKeyPem, afterEnd)
    expect(seen).toEqual([null, null, ''])
  })

  test('are null if they exceed the size limit', async () => {
    const name = `https://${'a'.repeat(180)}`
    const large = await leafOf(Array.from({ length: 200 }, (_, at) => `${name}/${at}`))
    const [first] = parseCertificates(large.certificatePem)
    expect(first.der.length).toBeGreaterThan(PEER_CHAIN_BYTES_MAX)
    const look = (socket: TLSSocket) => [
      chainOf(socket),
      peerLeafDer(socket),
      peerLeafSha256(socket),
    ]
    expect(await seenOf([first], large.privateKeyPem, look)).toEqual([null, null, ''])
  })
})
