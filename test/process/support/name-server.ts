import { createSocket } from 'node:dgram'
import type { Socket } from 'node:dgram'

const HEADER_BYTES = 12
const TYPE_A = 1

/** A DNS server (RFC 1035) on loopback that knows the IPv4 addresses of a few names, which a test may change. */
export class NameServer {
  readonly #socket: Socket
  readonly #names: Map<string, readonly string[]>
  questions = 0

  private constructor(socket: Socket, names: ReadonlyMap<string, readonly string[]>) {
    this.#socket = socket
    this.#names = new Map(names)
    socket.on('message', (question, { port, address }) => {
      this.questions += 1
      socket.send(this.#answer(question), port, address)
    })
  }

  static async start(names: ReadonlyMap<string, readonly string[]>): Promise<NameServer> {
    const socket = createSocket('udp4')
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(0, '127.0.0.1', resolve)
    })
    return new NameServer(socket, names)
  }

  /** host:port */
  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`
  }

  set(name: string, addresses: readonly string[]): void {
    this.#names.set(name, addresses)
  }

  close(): void {
    this.#socket.close()
  }

  #answer(question: Buffer): Buffer {
    const labels: string[] = []
    let at = HEADER_BYTES
    for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
      labels.push(question.toString('latin1', at + 1, at + 1 + length))
      at += length + 1
    }
    const type = question.readUInt16BE(at + 1)
    const asked = question.subarray(HEADER_BYTES, at + 5)
    const known = this.#names.get(labels.join('.').toLowerCase())
    const addresses = type === TYPE_A ? (known ?? []) : []
    const header = Buffer.alloc(HEADER_BYTES)
    header.writeUInt16BE(question.readUInt16BE(0), 0)
    // An authoritative answer; code 3 says that there is no such name.
    header.writeUInt16BE(0x8400 | (known === undefined ? 3 : 0), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(addresses.length, 6)
    return Buffer.concat([header, asked, ...addresses.map(recordOf)])
  }
}

/** An A record of the name in the question, good for no time at all. */
function recordOf(address: string): Buffer {
  const record = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0])
  Buffer.from(address.split('.').map(Number)).copy(record, HEADER_BYTES)
  return record
}
