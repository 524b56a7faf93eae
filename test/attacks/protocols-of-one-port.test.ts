import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  type CertificateWithKey,
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { encodeFrame } from '../../src/channel/frame.ts'
import { encodeText } from '../../src/channel/headers.ts'
import { newCa } from '../support/authorities.ts'
import { OnePort } from '../router/one-port-support.ts'
import { eventually } from '../router/support.ts'

// The attack: the port that a router shares between links and clients checks certificates of
// clients less strictly. A stranger offers the ALPN protocol of links, of clients, or of both, and
// then sends the messages of the other one.

let router: OnePort
beforeEach(async () => {
  router = await OnePort.open()
})
afterEach(() => router.close())

async function strangersKey(): Promise<CertificateWithKey> {
  return await issueLeaf({
    issuer: await newCa('another network', Date.now()),
    commonName: 'router2',
    uris: [],
    hosts: [],
    usages: ['client'],
    validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
  })
}

/** Sends the hello of a link, and expects that no link is created. */
async function getsNoLink(socket: TLSSocket): Promise<void> {
  router.sayLinkHello(socket)
  await eventually(() => socket.destroyed).toBe(true)
  expect(router.network.logged('link established')).toEqual([])
}

test.each([
  ['ziti-link', ['ziti-link']],
  ['ziti-link after ziti-edge', ['ziti-edge', 'ziti-link']],
  ['ziti-edge', ['ziti-edge']],
  ['ziti-edge after ziti-link', ['ziti-link', 'ziti-edge']],
  ['no protocol', null],
])(
  'A stranger that has a certificate of another network and offers %s gets no link',
  async (_, protocols) => {
    await getsNoLink(await router.handshake({ key: await strangersKey(), protocols }))
  },
)

test.each([
  ['ziti-link', ['ziti-link']],
  ['ziti-link after ziti-edge', ['ziti-edge', 'ziti-link']],
])('A stranger that offers %s cannot send the hello message of a link', async (_, protocols) => {
  for (const key of [await strangersKey(), null]) {
    await getsNoLink(await router.handshake({ key, protocols }))
  }
  expect(router.network.logged('link refused')).toEqual([])
})

test('A router that offers ziti-edge with its router certificate gets no link', async () => {
  await getsNoLink(await router.handshake({ protocols: ['ziti-edge'] }))
  await eventually(() => router.network.logged('client refused')).toHaveLength(1)
})

test('A client that offers ziti-link with a valid session is not accepted as a client', async () => {
  const { token, key } = await router.person('ann')
  const socket = await router.handshake({ key, protocols: ['ziti-link'] })
  const headers = new Map([[1002, encodeText(token)]])
  socket.write(encodeFrame({ contentType: 0, sequence: -1, headers, body: encodeText('client') }))
  await eventually(() => socket.destroyed).toBe(true)
  expect(router.network.logged('client connected')).toEqual([])
  await eventually(() => router.network.logged('link refused')).toHaveLength(1)
})
