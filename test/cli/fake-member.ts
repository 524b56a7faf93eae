import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
  issueControllerCertificateForKey,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { parseCertificateRequest } from '../../src/pki/authority/certificate-request.ts'
import { formatTicket, newTicketSecret, type Ticket } from '../../src/pki/secrets/ticket.ts'

const HOUR_MS = 60 * 60 * 1000

export interface Received {
  readonly ticket: string
  readonly id: string
  readonly certificateRequestPem: string
  readonly storeId: string
  readonly address: string
  readonly hosts: readonly string[]
  readonly version: string
  readonly featureLevel: number
}

export type Reply =
  | { readonly status: number; readonly body: unknown }
  /** The connection ends without a response. */
  | 'cut'

/** The public API of a controller `ctrl1`, as far as a join needs it, with its own authorities. */
export class FakeMember {
  readonly trustDomain = 'fake.flotilla.internal'
  readonly clusterId = '01900000-0000-7000-8000-000000000001'
  readonly received: Received[] = []
  /** Responses to send before correct ones; each is sent once. */
  readonly replies: Reply[] = []
  /** Hosts in the certificate that the member returns; null: the requested ones. */
  hosts: readonly string[] | null = null
  /**
   * Shared options that it returns, as JSON by name; null: it simulates a release that returns
   * none.
   */
  sharedOptions: Readonly<Record<string, string>> | null = {}
  /** Added to the time in the `date` header. */
  clockOffsetMs = 0
  readonly #root: CertificateWithKey
  readonly #issuing: CertificateWithKey
  readonly #server: Server

  private constructor(
    root: CertificateWithKey,
    issuing: CertificateWithKey,
    leaf: CertificateWithKey,
  ) {
    this.#root = root
    this.#issuing = issuing
    this.#server = createServer(
      { cert: leaf.certificatePem, key: leaf.privateKeyPem, ALPNProtocols: ['h2', 'http/1.1'] },
      (request, response) => void this.#onRequest(request, response),
    )
  }

  static async start(): Promise<FakeMember> {
    const validity = validityStartingAt(Date.now(), 10 * HOUR_MS)
    const root = await createRootAuthority({ commonName: 'fake root', validity })
    const issuing = await createIssuingAuthority({ commonName: 'fake issuing', root, validity })
    const leaf = await issueControllerCertificate({
      issuer: issuing,
      trustDomain: 'fake.flotilla.internal',
      id: 'ctrl1',
      hosts: ['127.0.0.1'],
      validity,
    })
    const member = new FakeMember(root, issuing, leaf)
    await new Promise<void>((done) => member.#server.listen(0, '127.0.0.1', done))
    return member
  }

  get address(): string {
    return `https://127.0.0.1:${this.port}/fabric/v1`
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Starts another controller with a certificate of the same authority, which is not a member. */
  async controllerAt(id: string): Promise<{ port: number; close: () => Promise<void> }> {
    const { certificatePem: cert, privateKeyPem: key } = await issueControllerCertificate({
      issuer: this.#issuing,
      trustDomain: this.trustDomain,
      id,
      hosts: ['127.0.0.1'],
      validity: validityStartingAt(Date.now(), HOUR_MS),
    })
    const server = createServer({ cert, key, ALPNProtocols: ['h2'] })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const close = async (): Promise<void> => {
      await new Promise((done) => server.close(done))
    }
    return { port: (server.address() as AddressInfo).port, close }
  }

  get caPem(): string {
    return this.#root.certificatePem
  }

  ticket(changes: Partial<Ticket> = {}): string {
    return formatTicket({
      id: 'ticket-0001',
      secret: newTicketSecret(),
      clusterId: this.clusterId,
      generation: 1,
      trustDomain: this.trustDomain,
      caPem: this.caPem,
      addresses: [this.address],
      isVoter: true,
      expiresAtMs: Date.now() + HOUR_MS,
      ...changes,
    })
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    response.setHeader('date', new Date(Date.now() + this.clockOffsetMs).toUTCString())
    response.setHeader('content-type', 'application/json')
    if (request.method !== 'POST') {
      response.writeHead(405).end('{}')
      return
    }
    const received = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Received
    this.received.push(received)
    const reply = this.replies.shift() ?? { status: 200, body: await this.#admit(received) }
    if (reply === 'cut') request.socket.destroy()
    else response.writeHead(reply.status).end(JSON.stringify(reply.body))
  }

  #options(): object {
    if (this.sharedOptions === null) return {}
    const given = Object.entries({ trustDomain: `"${this.trustDomain}"`, ...this.sharedOptions })
    return { sharedOptions: given.map(([name, value]) => ({ name, value })) }
  }

  async #admit(received: Received): Promise<unknown> {
    const { publicKeySpki } = await parseCertificateRequest(received.certificateRequestPem)
    const certificatePem = await issueControllerCertificateForKey({
      issuer: this.#issuing,
      trustDomain: this.trustDomain,
      id: received.id,
      hosts: this.hosts ?? received.hosts,
      publicKeySpki,
      validity: validityStartingAt(Date.now(), HOUR_MS),
    })
    const configuration = create(ConfigurationSchema, {
      members: [
        create(MemberSchema, {
          id: 'ctrl1',
          voter: true,
          address: 'ctrl1.example.net:1480',
          storeId: new Uint8Array(16),
          publicKeySha256: new Uint8Array(32),
        }),
      ],
    })
    return {
      data: {
        clusterId: this.clusterId,
        generation: 1,
        trustDomain: this.trustDomain,
        certificatePem,
        caPem: this.caPem,
        configuration: Buffer.from(toBinary(ConfigurationSchema, configuration)).toString(
          'base64url',
        ),
        configurationIndex: 7,
        isVoter: true,
        nowMs: Date.now(),
        ...this.#options(),
      },
      meta: {},
    }
  }
}

export function refusal(status: number, code: string, sentence: string): Reply {
  return {
    status,
    body: { error: { code, message: code, cause: { message: sentence } }, meta: {} },
  }
}
