import { connect, createServer, type Server, type Socket } from 'node:net'

import { parseHostPort } from '../../src/lib/text/names.ts'

/** A TCP relay in front of a controller; a test can break its connections. */
export class Relay {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isOpen = true
  /** Number of bytes that were forwarded to the controller. */
  bytes = 0

  private constructor(target: string) {
    const to = parseHostPort(target)
    if (to === null) throw new Error(`${target} is no address`)
    this.#server = createServer((incoming) => {
      if (!this.#isOpen) {
        incoming.destroy()
        return
      }
      const outgoing = connect(to.port, to.host)
      incoming.on('data', (data) => (this.bytes += data.length))
      for (const socket of [incoming, outgoing]) {
        this.#sockets.add(socket)
        socket.on('error', () => undefined)
        socket.on('close', () => {
          this.#sockets.delete(socket)
          incoming.destroy()
          outgoing.destroy()
        })
      }
      incoming.pipe(outgoing)
      outgoing.pipe(incoming)
    })
  }

  static async start(at: string, target: string): Promise<Relay> {
    const relay = new Relay(target)
    const { host, port } = parseHostPort(at) ?? { host: '', port: 0 }
    await new Promise<void>((resolve) => relay.#server.listen(port, host, resolve))
    return relay
  }

  /** Drops data in transit and refuses connections until `mend` is called. */
  cut(): void {
    this.#isOpen = false
    for (const socket of this.#sockets) socket.destroy()
  }

  mend(): void {
    this.#isOpen = true
  }

  async stop(): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
