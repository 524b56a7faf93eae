import { type Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'

import type { ApiDeps } from '../../../src/api/api-deps.ts'
import { createApi } from '../../../src/api/server.ts'
import { listenerTlsOptions } from '../../../src/api/http/transport/tls.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  type ValidityPeriod,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import type { Body } from './caller.ts'
import type { TestController } from './controller.ts'

const DAY_MS = 24 * 60 * 60_000

export interface TlsReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  readonly body: Body
}

export interface TlsRequest {
  readonly method?: string
  readonly path: string
  /** Client certificate for the handshake; null: none. */
  readonly by?: CertificateWithKey | null
  /** Body, sent as JSON unless it is a string. */
  readonly body?: unknown
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Keeps connections open; without an agent, each request opens a new connection. */
  readonly agent?: Agent | false
}

/** The real listener of a controller, on a separate port, for clients with certificates. */
export class TlsListener {
  readonly #listener: ReturnType<ReturnType<typeof createApi>['listener']>
  readonly port: number

  private constructor(listener: ReturnType<ReturnType<typeof createApi>['listener']>) {
    this.#listener = listener
    this.port = (listener.server.address() as AddressInfo).port
  }

  /** @param parts components that replace those of the controller. */
  static async open(
    controller: TestController,
    own?: CertificateWithKey,
    parts: Partial<ApiDeps> = {},
  ): Promise<TlsListener> {
    own ??= await serverKey(controller)
    const listener = createApi({ ...controller.parts, ...parts }).listener({
      apis: ['client', 'management', 'fabric', 'host', 'oidc'],
      https: { ...listenerTlsOptions, cert: own.certificatePem, key: own.privateKeyPem },
    })
    await listener.listen({ port: 0, host: '127.0.0.1' })
    return new TlsListener(listener)
  }

  /** Sends a request over a new connection, or over one of the agent. */
  call({
    method = 'POST',
    path,
    by = null,
    body,
    token,
    headers = {},
    agent = false,
  }: TlsRequest): Promise<TlsReply> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
      const asked = request({
        host: '127.0.0.1',
        port: this.port,
        agent,
        rejectUnauthorized: false,
        method,
        path,
        headers: {
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(token === undefined ? {} : { 'zt-session': token }),
          ...(method === 'GET' ? {} : { 'content-length': String(Buffer.byteLength(text)) }),
          ...headers,
        },
        ...(by === null ? {} : { cert: by.certificatePem, key: by.privateKeyPem }),
      })
      asked.on('response', (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const isJson = answer.headers['content-type'] === 'application/json'
          const { statusCode: status = 0, headers } = answer
          resolve({ status, headers, text, body: isJson ? (JSON.parse(text) as Body) : {} })
        })
      })
      asked.on('error', reject)
      asked.end(text)
    })
  }

  async close(): Promise<void> {
    await this.#listener.close()
  }
}

/** Server certificate of the listener, issued by the authority of the network. */
export function serverKey(controller: TestController): Promise<CertificateWithKey> {
  return issueLeaf({
    issuer: controller.authorities.issuing,
    commonName: 'ctrl1',
    uris: [],
    hosts: ['127.0.0.1'],
    usages: ['server'],
    validity: validityStartingAt(controller.clock.nowMs(), DAY_MS),
  })
}

/** A client certificate with its key, issued by the given authority. */
export function clientKey(
  issuer: CertificateWithKey,
  commonName: string,
  validity: ValidityPeriod | number,
  uris: readonly string[] = [],
): Promise<CertificateWithKey> {
  return issueLeaf({
    issuer,
    commonName,
    uris,
    hosts: [],
    usages: ['client'],
    validity: typeof validity === 'number' ? validityStartingAt(validity, DAY_MS) : validity,
  })
}
