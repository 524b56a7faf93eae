import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'

import {
  type CertifiedKey,
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { newCa } from '../../support/authorities.ts'

/** Answer of a hostile server. A text is sent as it is, anything else as JSON. */
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

/** A network whose controller gives any answer of its owner, under a separate CA. */
export class HostileServer {
  /** All that was sent to it. */
  readonly requests: HostileRequest[] = []
  /** @returns null: an empty list. */
  answer: (request: HostileRequest) => HostileAnswer | null = () => null
  readonly ca: CertifiedKey
  origin = ''
  readonly #server: Server

  private constructor(ca: CertifiedKey, leaf: CertifiedKey) {
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

  /** @param ca of another one, whose certificates its owner can issue as well. */
  static async open(ca?: CertifiedKey): Promise<HostileServer> {
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

  /** Can be called again. */
  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }
}
