import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'

import {
  type CertificateWithKey,
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { newCa } from '../../support/authorities.ts'

/** Response of a hostile server. A string is sent unchanged, any other body as JSON. */
export interface HostileAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface HostileRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
}

/** A controller whose owner chooses its responses, with its own CA. */
export class HostileServer {
  /** All requests that the server has received. */
  readonly requests: HostileRequest[] = []
  /** Determines the response. @returns null for an empty list. */
  answer: (request: HostileRequest) => HostileAnswer | null = () => null
  readonly ca: CertificateWithKey
  origin = ''
  readonly #server: Server

  private constructor(ca: CertificateWithKey, leaf: CertificateWithKey) {
    this.ca = ca
    const { certificatePem: cert, privateKeyPem: key } = leaf
    this.#server = createServer({ cert, key }, (asked, response) => {
      let body = ''
      asked.setEncoding('utf8')
      asked.on('data', (chunk: string) => (body += chunk))
      asked.on('end', () => {
        const { pathname: path, searchParams: query } = new URL(asked.url ?? '', this.origin)
        const request = { method: asked.method ?? '', path, query, body }
        this.requests.push(request)
        const {
          status = 200,
          headers = {},
          body: said = { data: [], meta: {} },
        } = this.answer(request) ?? {}
        const text = typeof said === 'string' ? said : JSON.stringify(said)
        response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
      })
    })
  }

  /**
   * @param ca a CA of another network whose owner also runs this server, so that it can issue
   * certificates with that CA.
   */
  static async open(ca?: CertificateWithKey): Promise<HostileServer> {
    const issuer = ca ?? (await newCa('hostile network', Date.now()))
    const leaf = await issueLeaf({
      issuer,
      commonName: 'hostile controller',
      uris: [],
      hosts: ['127.0.0.1'],
      usages: ['server'],
      validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
    })
    const made = new HostileServer(issuer, leaf)
    await new Promise<void>((done) => made.#server.listen(0, '127.0.0.1', done))
    made.origin = `https://127.0.0.1:${(made.#server.address() as AddressInfo).port}`
    return made
  }

  /** Closes the server. May be called twice. */
  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }
}
