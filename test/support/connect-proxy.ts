import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'

import { startListening, listeningPort } from '../../src/lib/runtime/listening.ts'

/** An HTTP proxy that supports only CONNECT, and records the requested servers. */
export class ConnectProxy implements AsyncDisposable {
  /** Servers that clients requested, `host:port`. */
  readonly servers: string[] = []
  /** The header Proxy-Authorization of each request. */
  readonly authorizations: (string | undefined)[] = []
  /**
   * For a host name, the address to which the proxy connects, because the names in tests do not
   * resolve.
   */
  readonly hosts = new Map<string, string>()
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor() {
    this.#server = createServer((_, response) => response.writeHead(405).end())
    this.#server.on('connect', ({ url = '', headers }, client: Socket) => {
      this.servers.push(url)
      this.authorizations.push(headers['proxy-authorization'])
      const { hostname, port } = new URL(`http://${url}`)
      const host = this.hosts.get(hostname) ?? hostname
      const server = connect({ host, port: Number(port) })
      for (const socket of [client, server]) {
        this.#sockets.add(socket)
        socket.on('error', () => undefined)
        socket.once('close', () => {
          client.destroy()
          server.destroy()
        })
      }
      server.once('connect', () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n')
        client.pipe(server).pipe(client)
      })
    })
  }

  static async open(): Promise<ConnectProxy> {
    const proxy = new ConnectProxy()
    await startListening(proxy.#server, { host: '127.0.0.1', port: 0 })
    return proxy
  }

  get port(): number {
    return listeningPort(this.#server)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((done) => this.#server.close(() => done()))
  }
}
