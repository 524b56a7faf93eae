import { create, toBinary } from '@bufbuild/protobuf'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'

import { ApiSessionAddedSchema } from '../../proto/gen/router_pb.ts'
import { encodeFrame } from '../../src/channel/frame.ts'
import { linkHelloMessage } from '../../src/channel/messages/links.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { freePort } from '../support/ports.ts'
import { type Person, TestClient } from './edge/support.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'

/** A router that serves links and clients at one address, and the controller of this router. */
export class OnePort {
  readonly network: TestNetwork
  readonly controller: ScriptedController
  readonly port: number
  readonly #sockets: Socket[] = []
  readonly #clients: TestClient[] = []

  private constructor(network: TestNetwork, controller: ScriptedController, port: number) {
    this.network = network
    this.controller = controller
    this.port = port
  }

  /** @param more additional lines of the configuration. */
  static async open(more = '', serves: 'both' | 'links' | 'browsers' = 'both'): Promise<OnePort> {
    const network = await TestNetwork.create()
    const controller = await network.controller('a')
    const port = await freePort()
    const place = `"tls:127.0.0.1:${port}"`
    const advertise = `advertise: "127.0.0.1:${port}"`
    const options = 'options: {connectTimeout: 60s}'
    const links = `link: {listeners: [{binding: transport, bind: ${place}, ${advertise}, ${options}}]}`
    const web = `, {binding: edge, bind: "wss:127.0.0.1:${port}", ${advertise}}`
    const browsers = serves === 'browsers' ? web : ''
    const clients = `edge: {}\nlisteners: [{binding: edge, bind: ${place}, ${advertise}, ${options}}${browsers}]`
    const sections = [links, ...(serves === 'links' ? [] : [clients]), more].join('\n')
    await network.running([controller.address], sections)
    await eventually(() => controller.isConnected).toBe(true)
    return new OnePort(network, controller, port)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    for (const client of this.#clients) client.channel.close('over')
    await this.network.close()
  }

  kept<T extends Socket>(socket: T): T {
    socket.on('error', () => undefined)
    this.#sockets.push(socket.resume())
    return socket
  }

  /** Performs a TLS handshake as a router, until it completes or fails. */
  async handshake(options: {
    readonly holder?: string
    readonly key?: CertificateWithKey | null
    readonly localAddress?: string
    readonly protocols?: string[] | null
  }): Promise<TLSSocket> {
    const { holder = 'router2', localAddress = '127.0.0.1', protocols = ['ziti-link'] } = options
    const key = options.key === undefined ? await this.network.leaf(holder, [], []) : options.key
    const socket = this.kept(
      connect({
        host: '127.0.0.1',
        port: this.port,
        ca: this.network.root.certificatePem,
        ...(key === null ? {} : { cert: key.certificatePem, key: key.privateKeyPem }),
        ...(protocols === null ? {} : { ALPNProtocols: protocols }),
        ...({ localAddress } as object),
      }),
    )
    await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]).catch(() => null)
    return socket
  }

  /** Sends the hello of router2 for a link. */
  sayLinkHello(socket: TLSSocket): void {
    const ids = { linkId: 'of router2', routerId: 'router2', dialedId: 'router1' }
    socket.write(encodeFrame(linkHelloMessage({ ...ids, dialedVersion: 'v2.0.0', iteration: 1 })))
  }

  /** Connects as an honest router, which gets its link. */
  async linked(
    localAddress = '127.0.0.1',
    protocols: string[] | null = ['ziti-link'],
  ): Promise<TLSSocket> {
    const before = this.network.logged('link established').length
    const socket = await this.handshake({ localAddress, protocols })
    this.sayLinkHello(socket)
    await eventually(() => this.network.logged('link established').length).toBe(before + 1)
    return socket
  }

  async person(name: string): Promise<Person> {
    const key = await this.network.leaf(name, [], [])
    const person = { identityId: name, sessionId: `${name}1`, token: `1.${name}.mac`, key }
    const fingerprints = [parseCertificate(key.certificatePem).sha1]
    const session = { id: person.sessionId, token: person.token, identityId: name }
    const message = create(ApiSessionAddedSchema, {
      apiSessions: [{ ...session, certFingerprints: fingerprints }],
    })
    this.controller.send({ contentType: 20_200, body: toBinary(ApiSessionAddedSchema, message) })
    return person
  }

  async client(
    name: string,
    options: Parameters<typeof TestClient.open>[2] = {},
  ): Promise<TestClient> {
    const client = await TestClient.open(this.port, await this.person(name), options)
    this.#clients.push(client)
    return client
  }
}

/** The first TLS message of a client of this Node version. */
export async function clientHelloBytes(protocols: string[] | null): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const pipe = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _, done) => {
      resolve(chunk)
      done()
    },
  })
  const socket = connect({
    socket: pipe,
    ...(protocols === null ? {} : { ALPNProtocols: protocols }),
  })
  socket.on('error', () => undefined)
  const bytes = await promise
  socket.destroy()
  return bytes
}
