import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, type Server } from 'node:net'
import { createServer } from 'node:tls'
import { describe, expect, test } from 'vitest'

import { callPeerOnce } from '../../src/cluster/mesh/peer-call.ts'
import { CONTROL_PROTOCOL } from '../../src/channel/messages/control.ts'

import {
  type Authority,
  controllerIdentity,
  createAuthority,
  issueIdentity,
  memberOf,
  startMesh,
  TRUST_DOMAIN,
  until,
} from './mesh-fixture.ts'

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

test.each([
  [
    'with a key that is not pinned',
    (authority: Authority) => controllerIdentity(authority, 'b'),
    'refused peer b at ADDRESS: its key is not the one pinned in its member record',
  ],
  [
    'of another controller',
    (authority: Authority) => controllerIdentity(authority, 'c'),
    'refused peer c at ADDRESS: expected b at this address',
  ],
  [
    'of a router',
    (authority: Authority) =>
      issueIdentity(authority, { commonName: 'b', uris: [`spiffe://${TRUST_DOMAIN}/router/b`] }),
    'refused peer b at ADDRESS: its certificate names no controller',
  ],
  [
    'of another CA',
    async () => await controllerIdentity(await createAuthority(), 'b'),
    'no connection to b at ADDRESS: its certificate is of another CA',
  ],
])(
  'a certificate %s at the address of a peer causes one log line, with the address and the reason',
  async (_name, issue, line) => {
    const authority = await createAuthority()
    const [a, b] = [
      await controllerIdentity(authority, 'a'),
      await controllerIdentity(authority, 'b'),
    ]
    const { certificatePem: cert, privateKeyPem: key } = await issue(authority)
    const server = createServer({ cert, key, ALPNProtocols: ['h2'] }, (socket) =>
      socket.on('error', () => undefined),
    )
    server.on('tlsClientError', () => undefined)
    let attempts = 0
    server.on('connection', () => (attempts += 1))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const address = `127.0.0.1:${port}`
    const { mesh, log } = await startMesh('a', a, [memberOf('b', b, address)])
    try {
      await until('it was tried often', () => attempts >= 4)
      const [first = '', ...others] = log.lines.filter((one) => one.startsWith('warn'))
      expect(first).toContain(line.replace('ADDRESS', address))
      expect(others).toEqual([])
    } finally {
      mesh.stop()
      server.close()
    }
  },
)

describe('a wrong port of a controller', () => {
  const wrongPort =
    'it does not accept connections of controllers; use the cluster port of that controller (cluster.bind, default 1480)'

  test.each([
    ['the HTTPS port', ['http/1.1']],
    ['the router port', [CONTROL_PROTOCOL]],
    ['a port without TLS', null],
  ])('is reported with the remedy if it is %s', async (_name, protocols) => {
    const authority = await createAuthority()
    const [a, b] = [
      await controllerIdentity(authority, 'a'),
      await controllerIdentity(authority, 'b'),
    ]
    const { certificatePem: cert, privateKeyPem: key } = b
    const server: Server =
      protocols === null
        ? createHttpServer()
        : createServer({ cert, key, ALPNProtocols: protocols, minVersion: 'TLSv1.2' }, (socket) =>
            socket.on('error', () => undefined),
          )
    server.on('tlsClientError', () => undefined)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const address = `127.0.0.1:${port}`
    const { mesh, log } = await startMesh('a', a, [memberOf('b', b, address)])
    try {
      const call = callPeerOnce({
        address,
        identity: a,
        trustDomain: 'test.flotilla',
        method: 'enter',
        payload: new Uint8Array(),
        timeoutMs: 5_000,
      })
      await expect.soft(call).rejects.toThrow(`${address}: ${wrongPort}`)
      await until('it was tried', () => log.lines.some((line) => line.includes('no connection')))
      expect(log.lines.join('\n')).toContain(`no connection to b at ${address}: ${wrongPort}`)
    } finally {
      mesh.stop()
      server.close()
    }
  })
})
