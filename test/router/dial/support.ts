import { createServer, connect, type Server, type Socket, type AddressInfo } from 'node:net'

import type {
  CircuitApplication,
  CircuitEndpoint,
  DialRequest,
  LocalCircuit,
} from '../../../src/overlay/circuits/circuit-endpoint.ts'
import type { JoinedCircuits } from '../joined-circuits.ts'
import { parseRouterConfig } from '../../../src/config/router/load.ts'
import type { RouterConfig } from '../../../src/config/router/table.ts'
import type { ControlConnection } from '../../../src/router/controllers/control-connection.ts'
import type { PayloadContent } from '../../../src/channel/messages/payload.ts'

export const FIN = 1

/**
 * @param sections sections of a router configuration, in addition to those that every router has.
 */
export function configured(sections: string): RouterConfig {
  const text = `v: 3
identity: {cert: r.cert, server_cert: r.server.cert, key: r.key, ca: r.ca}
ctrl: {endpoint: "tls:127.0.0.1:6262"}
csr: {sans: {dns: [r.test]}}
${sections}
`
  const loaded = parseRouterConfig('/router.yml', text, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
  return loaded.config
}

export const ALL_DIALERS =
  'dialers: [{binding: transport}, {binding: transport_udp}, {binding: proxy}, {binding: proxy_udp}]'

/** No test expects a message to the controller that owns the circuit. */
export const nobody = { id: 'ctrl1' } as Partial<ControlConnection> as ControlConnection

export function circuit(id: string, isTerminator: boolean): LocalCircuit {
  return { id, address: `${id} ${isTerminator ? 'E' : 'I'}`, owner: nobody, isTerminator }
}

export function dialTo(destination: string, timeoutMs = 20_000, id = 'c1'): DialRequest {
  const dialedBy = 'client ann'
  return { circuit: circuit(id, true), dialedBy, destination, timeoutMs, peerData: new Map() }
}

/** The other end of a circuit, which the test controls. */
export class FarEnd implements CircuitApplication {
  readonly pieces: PayloadContent[] = []
  readonly end: CircuitEndpoint
  isFinished = false
  closedFor: string | null = null
  /** Whether all data was delivered, according to the last report; null while the circuit is open. */
  isWhole: boolean | null = null
  /** If false, this end accepts one piece, and no more until `takeAll`. */
  takes = true
  #onWritable: (() => void) | null = null

  constructor(circuits: JoinedCircuits, id = 'c1') {
    this.end = circuits.open(circuit(id, false), this)
  }

  get text(): string {
    return Buffer.concat(this.pieces.map(({ body }) => body)).toString('utf8')
  }

  /** Sizes of the pieces, without the empty one that ends a stream. */
  get sizes(): number[] {
    return this.pieces.map(({ body }) => body.length).filter((size) => size > 0)
  }

  send(text: string, edgeFlags = 0): boolean {
    return this.end.send({ body: Buffer.from(text), edgeFlags, traceId: null })
  }

  /** Sends all chunks, as fast as the circuit accepts them. */
  async sendAll(chunks: Iterable<Uint8Array>): Promise<void> {
    for (const body of chunks) {
      if (this.end.send({ body, edgeFlags: 0, traceId: null })) continue
      await new Promise<void>((done) => (this.#onWritable = done))
    }
  }

  takeAll(): void {
    this.takes = true
    this.end.resume()
  }

  deliver(piece: PayloadContent): boolean {
    this.pieces.push(piece)
    return this.takes
  }

  onFinished(): void {
    this.isFinished = true
  }

  onWritable(): void {
    this.#onWritable?.()
  }

  onClosed(reason: string, isWhole: boolean): void {
    this.isWhole = isWhole
    this.closedFor = reason
  }
}

/** A server that only accepts connections; the test controls its sockets. */
export class TestTarget {
  readonly server: Server
  readonly sockets: Socket[] = []

  private constructor(onSocket: (socket: Socket) => void) {
    this.server = createServer({ allowHalfOpen: true }, (socket) => {
      this.sockets.push(socket)
      socket.on('error', () => undefined)
      onSocket(socket)
    })
  }

  static async open(onSocket: (socket: Socket) => void = () => undefined): Promise<TestTarget> {
    const target = new TestTarget(onSocket)
    await new Promise<void>((done) => target.server.listen(0, '127.0.0.1', done))
    return target
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  get address(): string {
    return `tcp:127.0.0.1:${this.port}`
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise<void>((done) => this.server.close(() => done()))
  }
}

export async function connected(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => undefined)
  await new Promise<void>((done, fail) => {
    socket.once('connect', done)
    socket.once('error', fail)
  })
  return socket
}

/** Chunks of bytes that all differ, but are the same in each run. */
export function* bytes(total: number, chunkBytes = 64 * 1024): Generator<Uint8Array> {
  for (let at = 0; at < total; at += chunkBytes) {
    const chunk = Buffer.alloc(Math.min(chunkBytes, total - at))
    for (let word = 0; word + 4 <= chunk.length; word += 4) chunk.writeUInt32LE(at + word, word)
    yield chunk
  }
}
