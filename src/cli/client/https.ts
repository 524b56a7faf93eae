import { request as requestPlain } from '../../lib/node-http.ts'
import type { IncomingHttpHeaders } from 'node:http'
import { type Agent, request as requestOverTls } from 'node:https'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'

import { faultOfController, parseCertificate } from '../../pki/certificate.ts'
import { jsonOrNull } from '../../lib/text/json-or-null.ts'

const ANSWER_BYTES_MAX = 8 * 1024 * 1024

export interface JsonAnswer {
  readonly status: number
  /** Of the `date` header, UTC ms, cut to whole seconds; null when there is none. */
  readonly dateMs: number | null
  readonly headers: IncomingHttpHeaders
  /** The parsed body; null when there is none or it is no JSON. */
  readonly body: unknown
}

/**
 * Why a server could not be asked: a clause that completes "<address>: …", with the remedy when
 * there is one.
 */
export class HttpsFault extends Error {
  override readonly name = 'HttpsFault'
  /** True: the request may have been received and acted on. */
  readonly isSent: boolean

  constructor(reason: string, isSent: boolean, cause?: unknown) {
    super(reason, { cause })
    this.isSent = isSent
  }
}

export interface JsonRequest {
  /** `https://host:port`, perhaps with a path. */
  readonly url: string
  /** Of a unix socket that the request goes through, without TLS, whatever host the URL names. */
  readonly socketPath?: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Sent as text/plain in place of `body`. */
  readonly text?: string
  /**
   * PEM: the only certificates that the server may be verified against; without it, those that this
   * host trusts.
   */
  readonly caPem?: string
  /** Shown in the handshake; both PEM. */
  readonly client?: { readonly certificatePem: string; readonly privateKeyPem: string }
  /** Keeps connections for several requests; without it each has one of its own. */
  readonly agent?: Agent
  /**
   * Judges who has answered, after its chain; the default is that it has the host name of the URL
   * and is not another part of the network than a controller.
   */
  readonly checkServer?: (host: string, certificate: PeerCertificate) => Error | undefined
  readonly timeoutMs: number
  /** Beyond: the answer is given up. */
  readonly answerBytesMax?: number
}

/** One request. @throws {HttpsFault} */
export function askJson(options: JsonRequest): Promise<JsonAnswer> {
  const payload = options.text ?? (options.body === undefined ? null : JSON.stringify(options.body))
  let isSent = false
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      const isActedOn = isSent && !wantsCertificate(error)
      reject(new HttpsFault(reasonOf(error, options.timeoutMs), isActedOn, error))
    }
    const deadline = setTimeout(() => {
      asked.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }))
    }, options.timeoutMs)
    const { socketPath } = options
    const request = socketPath === undefined ? requestOverTls : requestPlain
    const asked = request(
      options.url,
      {
        ...(socketPath === undefined ? {} : { socketPath }),
        method: options.method,
        agent: options.agent ?? false,
        ...(options.caPem === undefined ? {} : { ca: options.caPem }),
        ...(options.client === undefined
          ? {}
          : { cert: options.client.certificatePem, key: options.client.privateKeyPem }),
        minVersion: 'TLSv1.2',
        checkServerIdentity: options.checkServer ?? checkController,
        headers: {
          accept: 'application/json',
          ...(payload === null
            ? {}
            : {
                'content-type': options.text === undefined ? 'application/json' : 'text/plain',
                'content-length': String(Buffer.byteLength(payload)),
              }),
          ...options.headers,
        },
      },
      (answer) => {
        const chunks: Buffer[] = []
        let bytes = 0
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > (options.answerBytesMax ?? ANSWER_BYTES_MAX))
            answer.destroy(new Error('sent a response that is too long'))
          else chunks.push(chunk)
        })
        answer.on('error', fail)
        answer.on('end', () => {
          const date = Date.parse(answer.headers.date ?? '')
          resolve({
            status: answer.statusCode ?? 0,
            dateMs: Number.isNaN(date) ? null : date,
            headers: answer.headers,
            body: jsonOrNull(Buffer.concat(chunks).toString('utf8')),
          })
        })
      },
    )
    asked.on('socket', (socket) => {
      // From here on the request is on its way, and only an answer tells what became of it.
      if (asked.reusedSocket) isSent = true
      else {
        socket.once(socketPath === undefined ? 'secureConnect' : 'connect', () => {
          isSent = true
        })
      }
    })
    asked.on('error', fail)
    asked.on('close', () => clearTimeout(deadline))
    asked.end(payload ?? undefined)
  })
}

function checkController(host: string, certificate: PeerCertificate): Error | undefined {
  const fault = checkServerIdentity(host, certificate)
  if (fault !== undefined) return fault
  try {
    const reason = faultOfController(parseCertificate(Uint8Array.from(certificate.raw)))
    return reason === null ? undefined : new Error(reason)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

/** TLS 1.3 tells a client without a certificate only after its first request, which is not read. */
function wantsCertificate(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return code === 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'
}

/** A clause that completes "<address>: it …". */
export function reasonOf(error: unknown, timeoutMs: number): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (wantsCertificate(error)) {
    return 'requires a client certificate; use the HTTPS port of the controller, not its cluster or router port'
  }
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    return 'does not speak TLS; another program is listening there'
  }
  switch (code) {
    case 'ECONNREFUSED':
      return 'refused the connection; no controller is listening there, or a firewall rejects it'
    case 'ETIMEDOUT':
      return `did not respond within ${timeoutMs / 1000} s; it may be overloaded, or a firewall may drop the packets`
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'is unreachable from this host; check routes and firewalls'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'cannot be resolved on this host; check its DNS'
    case 'ECONNRESET':
    case 'EPIPE':
      return 'closed the connection'
    case 'CERT_HAS_EXPIRED':
      return 'presented an expired certificate; renew it there, or correct the clock of this host'
    case 'CERT_NOT_YET_VALID':
      return 'presented a certificate that is not valid yet; correct the clock of this host'
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'presented a certificate without this address; use a name that is in the certificate'
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'CERT_SIGNATURE_FAILURE':
      return 'presented a certificate of an unknown CA; it belongs to another cluster, or is not a controller'
    default:
      return error instanceof Error ? error.message : String(error)
  }
}
