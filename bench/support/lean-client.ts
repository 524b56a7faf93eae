import { readFileSync } from 'node:fs'
import tls from 'node:tls'

/**
 * A client with one keep-alive HTTPS connection and one request at a time. It costs so little that
 * a benchmark measures the server: it reads the status and the length, and returns the body
 * unparsed.
 */
export class LeanClient {
  readonly #socket: tls.TLSSocket
  readonly #host: string
  readonly #tokenHeader: string
  #buffer: Buffer = Buffer.alloc(0)
  #waiting: { resolve: (answer: LeanAnswer) => void; reject: (error: Error) => void } | null = null

  private constructor(socket: tls.TLSSocket, host: string, tokenHeader: string) {
    this.#socket = socket
    this.#host = host
    this.#tokenHeader = tokenHeader
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    const fail = (error: Error): void => {
      const waiting = this.#waiting
      this.#waiting = null
      waiting?.reject(error)
    }
    socket.on('error', fail)
    socket.on('close', () => fail(new Error('connection closed')))
  }

  /** @param tokenHeader beginning of the header line, before the token of a session. */
  static connect(
    baseUrl: string,
    ca: string,
    tokenHeader: string = 'net-session: ',
  ): Promise<LeanClient> {
    return LeanClient.connectBy(baseUrl, { ca: readFileSync(ca) }, tokenHeader)
  }

  /** Opens a connection with these credentials, for example a client certificate. */
  static connectBy(
    baseUrl: string,
    credentials: Pick<tls.ConnectionOptions, 'ca' | 'cert' | 'key' | 'secureContext'>,
    tokenHeader: string,
  ): Promise<LeanClient> {
    const url = new URL(baseUrl)
    return new Promise((resolve, reject) => {
      const socket = tls.connect(
        {
          host: url.hostname,
          port: Number(url.port),
          ...credentials,
          ALPNProtocols: ['http/1.1'],
        },
        () => {
          socket.off('error', reject)
          resolve(new LeanClient(socket, url.host, tokenHeader))
        },
      )
      socket.once('error', reject)
      socket.once('close', () => reject(new Error('connection closed')))
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  request(
    method: string,
    path: string,
    token: string | null,
    body = '',
    extra = '',
    contentType = 'application/json',
  ): Promise<LeanAnswer> {
    const session = token === null ? '' : `${this.#tokenHeader}${token}\r\n`
    const content =
      body === ''
        ? ''
        : `content-type: ${contentType}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
    return new Promise((resolve, reject) => {
      if (!this.isOpen) throw new Error('connection closed')
      this.#waiting = { resolve, reject }
      this.#socket.write(
        `${method} ${path} HTTP/1.1\r\nhost: ${this.#host}\r\n${session}${content}${extra}\r\n${body}`,
      )
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk])
    const end = this.#buffer.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#buffer.toString('latin1', 0, end)
    const length = /transfer-encoding: chunked/i.test(head)
      ? chunkedLength(this.#buffer, end + 4)
      : Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (this.#buffer.length < end + 4 + length) return
    const body = this.#buffer.toString('utf8', end + 4, end + 4 + length)
    this.#buffer = this.#buffer.subarray(end + 4 + length)
    const waiting = this.#waiting
    this.#waiting = null
    const seconds = /retry-after: (\d+)/i.exec(head)?.[1]
    const retryAfterSeconds = seconds === undefined ? null : Number(seconds)
    waiting?.resolve({ status: Number(head.slice(9, 12)), body, retryAfterSeconds })
  }
}

const LAST_CHUNK = '\r\n0\r\n\r\n'

/**
 * The end of a chunked body if it ends with the received data, which holds with one request at a
 * time; otherwise a position beyond the data.
 */
function chunkedLength(buffer: Buffer, start: number): number {
  const isWhole = buffer.toString('latin1', buffer.length - LAST_CHUNK.length) === LAST_CHUNK
  return isWhole ? buffer.length - start : Infinity
}

export interface LeanAnswer {
  readonly status: number
  readonly body: string
  readonly retryAfterSeconds: number | null
}
