import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { sendHttpsRequest as askServer } from '../../src/cli/client/https-request.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { controllerSpiffeId, identitySpiffeId, routerSpiffeId } from '../../src/pki/spiffe.ts'
import { networkAuthorities, type TestAuthorities } from '../support/authorities.ts'

// The attack: a router has a server certificate for the loopback names, from the authority with
// which a person verifies controllers. On that person's host it listens instead of a controller,
// and receives a password or a token.

const DOMAIN = 'test.internal'
let authorities: TestAuthorities
beforeAll(async () => {
  authorities = await networkAuthorities(Date.now())
})

function leafOf(uris: readonly string[]): Promise<CertificateWithKey> {
  return issueLeaf({
    issuer: authorities.issuing,
    commonName: 'somebody',
    uris,
    hosts: ['localhost', '127.0.0.1'],
    usages: ['server'],
    validity: validityStartingAt(Date.now(), 60_000),
  })
}

const releases: (() => void)[] = []
afterAll(() => {
  for (const release of releases) release()
})

/** A listener on a port of this host, and the data that it has received. */
async function standingThere(
  uris: readonly string[],
): Promise<{ url: string; sent: () => string }> {
  const { certificatePem: cert, privateKeyPem: key } = await leafOf(uris)
  let text = ''
  const server = createServer({ cert, key }, (socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const body = '{"data":{}}'
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    })
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  releases.push(() => server.close())
  const { port } = server.address() as AddressInfo
  return { url: `https://127.0.0.1:${port}`, sent: () => text }
}

const posing = [
  [routerSpiffeId(DOMAIN, 'router2')],
  [identitySpiffeId(DOMAIN, 'controller')],
  [controllerSpiffeId(DOMAIN, 'ctrl1'), routerSpiffeId(DOMAIN, 'router2')],
]

test('a log-in is sent to a controller, but not to a router that answers at the controller’s address', async () => {
  const caPem = (): string => authorities.anchorsPem()
  const ask = (url: string) =>
    askServer({
      url,
      method: 'POST',
      caPem: caPem(),
      timeoutMs: 10_000,
      body: { password: 'secret' },
    })
  for (const uris of posing) {
    const attacker = await standingThere(uris)
    await expect(ask(attacker.url)).rejects.toThrow('which is not a controller')
    expect(attacker.sent()).toBe('')
  }
  const controller = await standingThere([controllerSpiffeId(DOMAIN, 'ctrl1')])
  expect((await ask(controller.url)).status).toBe(200)
})

test('an enrollment token is not sent to a router that answers at a controller’s address', async () => {
  const ask = (origin: string) =>
    askServer({
      url: origin,
      method: 'POST',
      text: 'token',
      verified: 'nothing',
      judge: () => undefined,
      timeoutMs: 10_000,
    })
  for (const uris of posing) {
    const attacker = await standingThere(uris)
    await expect(ask(attacker.url)).rejects.toThrow('which is not a controller')
    expect(attacker.sent()).toBe('')
  }
  const controller = await standingThere([controllerSpiffeId(DOMAIN, 'ctrl1')])
  expect((await ask(controller.url)).status).toBe(200)
})
