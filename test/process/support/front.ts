import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

import { proxyHeader } from '../../support/proxy-header.ts'

interface FrontOptions {
  /**
   * Whether the front begins each connection with the address of its client (PROXY protocol version
   * 2).
   */
  readonly sendsHeader?: boolean
}

/**
 * One address for several controllers, like a load balancer: it forwards each connection to the
 * next controller that is running.
 */
export class Front {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Ports of the controllers, set once they are known. */
  ports: readonly number[] = []
  readonly #sendsHeader: boolean
  #turn = 0

  private constructor({ sendsHeader = false }: FrontOptions) {
    this.#sendsHeader = sendsHeader
    this.#server = createServer((socket) => void this.#serve(socket))
  }

  static async open(options: FrontOptions = {}): Promise<Front> {
    const made = new Front(options)
    made.#server.listen(0, '127.0.0.1')
    await once(made.#server, 'listening')
    return made
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async #serve(socket: Socket): Promise<void> {
    this.#keep(socket)
    for (let count = 0; count < this.ports.length; count += 1) {
      this.#turn = (this.#turn + 1) % this.ports.length
      const behind = connect(this.ports[this.#turn] ?? 0, '127.0.0.1')
      this.#keep(behind)
      try {
        await once(behind, 'connect')
      } catch {
        continue
      }
      const { remoteAddress = '', remotePort = 0 } = socket
      if (this.#sendsHeader) behind.write(proxyHeader(remoteAddress, remotePort))
      // If either end is lost, the front closes the other one too.
      behind.on('close', () => socket.destroy())
      socket.on('close', () => behind.destroy())
      socket.pipe(behind)
      behind.pipe(socket)
      return
    }
    socket.destroy()
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#sockets.delete(socket))
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}
