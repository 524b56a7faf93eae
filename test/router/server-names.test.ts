import { writeFileSync } from 'node:fs'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { encodeFrame } from '../../src/channel/frame.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { newCa } from '../support/authorities.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { linkHelloMessage } from '../../src/channel/messages/links.ts'
import { freePort } from '../support/ports.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'

// Goal: each listener of a router presents the certificate for the requested server name. Method: a
// real router with two certificates besides its first one.

let network: TestNetwork
let controller: ScriptedController
let port: number
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
  port = await freePort()
  await write('blue', ['blue.test'])
  await write('any', ['*.net.test'])
})
afterEach(() => network.close())

async function write(name: string, hosts: readonly string[]): Promise<void> {
  const { certificatePem, privateKeyPem } = await network.leaf(name, [], hosts)
  writeFileSync(network.path(`${name}.cert`), certificatePem, { mode: 0o600 })
  writeFileSync(network.path(`${name}.key`), privateKeyPem, { mode: 0o600 })
}

/**
 * @param sections configuration with the word PLACE instead of the keys of a listener.
 */
async function start(sections: string): Promise<void> {
  const place = `bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"`
  const alternates = ['blue', 'any'].map(
    (name) => `{server_cert: ${name}.cert, server_key: ${name}.key}`,
  )
  const router = network.router([controller.address], sections.replace('PLACE', place), {
    identity: `alt_server_certs: [${alternates.join(', ')}]`,
  })
  await router.start({ extends: false })
}

/**
 * Common name of the certificate that the listener presents for a requested name; null: no
 * requested name.
 */
async function shownTo(
  name: string | null,
  protocol: string | null = null,
): Promise<string | null> {
  const { certificatePem: cert, privateKeyPem: key } = await network.leaf('router2', [], [])
  const socket = connect({
    host: '127.0.0.1',
    port,
    cert,
    key,
    rejectUnauthorized: false,
    ...(name === null ? {} : { servername: name }),
    ...(protocol === null ? {} : { ALPNProtocols: [protocol] }),
  })
  socket.on('error', () => undefined)
  await new Promise<void>((done, fail) => {
    socket.once('secureConnect', done)
    socket.once('close', () => fail(new Error('closed')))
  })
  const shown = socket.getPeerX509Certificate()
  socket.destroy()
  return shown === undefined ? null : parseCertificate(Uint8Array.from(shown.raw)).commonName
}

describe('A certificate that the configuration assigns to a server name', () => {
  test.each([
    ['links', 'link: {listeners: [{binding: transport, PLACE}]}', 'ziti-link'],
    ['clients', 'edge: {}\nlisteners: [{binding: edge, PLACE}]', 'ziti-edge'],
    ['a proxy', 'listeners: [{binding: proxy, service: web, PLACE}]', null],
  ])('is presented by a listener for %s', async (_, sections, protocol) => {
    await start(sections)
    expect(await shownTo('blue.test', protocol)).toBe('blue')
    expect(await shownTo('red.net.test', protocol)).toBe('any')
    expect(await shownTo('elsewhere.example', protocol)).toBe('router1')
    expect(await shownTo(null, protocol)).toBe('router1')
  })

  test('is presented by a web server', async () => {
    const points = `bindPoints: [{interface: "127.0.0.1:${port}", address: "r.test:${port}"}]`
    await start(`web: [{name: w, ${points}, apis: [{binding: health-checks}]}]`)
    expect(await shownTo('blue.test')).toBe('blue')
    expect(await shownTo('elsewhere.example')).toBe('router1')
  })

  test('is presented in its new version after its file has changed', async () => {
    await start('listeners: [{binding: proxy, service: web, PLACE}]')
    expect(await shownTo('blue.test')).toBe('blue')
    await write('blue', ['green.test'])
    await eventually(() => shownTo('blue.test')).toBe('router1')
    expect(await shownTo('green.test')).toBe('blue')
  })
})

test('a router that dials a link is verified against the network CA, even if it requests the server name of an additional certificate', async () => {
  await start('link: {listeners: [{binding: transport, PLACE}]}')
  await eventually(() => controller.isConnected).toBe(true)
  const ids = { linkId: 'l1', routerId: 'router2', dialedId: 'router1', dialedVersion: 'v2.0.0' }
  /** Connects as router2 with the name of an alternate certificate, and sends its hello. */
  const dial = (key: CertificateWithKey): TLSSocket => {
    const credentials = { cert: key.certificatePem, key: key.privateKeyPem }
    const names = { servername: 'blue.test', ALPNProtocols: ['ziti-link'] }
    const socket = connect({
      host: '127.0.0.1',
      port,
      ...credentials,
      ...names,
      rejectUnauthorized: false,
    })
    socket.on('error', () => undefined)
    socket.write(encodeFrame(linkHelloMessage({ ...ids, iteration: 1 })))
    return socket
  }
  const issuer = await newCa('another network', Date.now())
  const stranger = await issueLeaf({
    issuer,
    commonName: 'router2',
    uris: [],
    hosts: [],
    usages: ['client'],
    validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
  })
  const refused = dial(stranger)
  await eventually(() => refused.destroyed).toBe(true)
  expect(network.logged('link refused'), 'the link got as far as a hello').toEqual([])
  expect(network.logged('link established')).toEqual([])
  const accepted = dial(await network.leaf('router2', [], []))
  await eventually(() => network.logged('link established')).toHaveLength(1)
  accepted.destroy()
})
