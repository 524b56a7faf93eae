import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

import { NoResponseError } from '../../client/client-errors.ts'
import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import { request as requestOf } from '../../lib/runtime/node-http.ts'
import {
  VerifyingHttpsAgent,
  type HttpsServerTarget,
  timeoutError,
} from './verifying-https-agent.ts'
import { errorCode, errorMessage } from '../../lib/error-code.ts'

const ANSWER_BYTES_MAX = 8 * 1024 * 1024

export interface HttpsRequest extends HttpsServerTarget {
  /**
   * URL `https://host:port`, with an optional path and query; `http:` for a request through a Unix
   * socket.
   */
  readonly url: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  /** The body, sent as JSON. */
  readonly body?: unknown
  /** Body that is sent instead of `body`, as text/plain unless the headers set another type. */
  readonly text?: string | undefined
  /**
   * Verified connections that several requests share; undefined: the request opens its own
   * connection.
   */
  readonly connections?: VerifyingHttpsAgent | undefined
  /** Maximum time of the whole request, ms; for a stream, maximum time without data. */
  readonly timeoutMs: number
}

export interface HttpsResponse {
  readonly status: number
  /** Time in the `date` header, UTC ms, a multiple of 1000; null when absent or malformed. */
  readonly dateMs: number | null
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The parsed JSON body; null when the body is not JSON. */
  readonly body: unknown
}

/** Why a request failed, with the remedy if there is one. */
export class HttpsFault extends NoResponseError {
  override readonly name = 'HttpsFault'
}

/**
 * Sends one request and reads a response of limited size. Redirects are not followed, because their
 * target has not been verified.
 * @param answerBytesMax the request is aborted if the response is larger.
 * @throws {HttpsFault}
 */
export async function sendHttpsRequest(
  request: HttpsRequest,
  answerBytesMax = ANSWER_BYTES_MAX,
): Promise<HttpsResponse> {
  const answer = await send(request, false)
  const text = await readResponseText(answer, answerBytesMax).catch((error: unknown) => {
    throw toHttpsFault(error, true, request.timeoutMs)
  })
  const date = Date.parse(answer.headers.date ?? '')
  return {
    status: answer.statusCode ?? 0,
    dateMs: Number.isNaN(date) ? null : date,
    headers: answer.headers,
    text,
    body: parseJsonOrNull(text),
  }
}

/**
 * Sends one request and returns a stream of the response. The consumer of the stream must limit its
 * size.
 * @param signal aborts the request or the response.
 * @returns once the head of the response has arrived.
 * @throws {HttpsFault}
 */
export function openHttpsStream(
  request: HttpsRequest,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  return send(request, true, signal)
}

/** @throws when the stream is interrupted or too long. */
export async function readResponseText(answer: IncomingMessage, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Error('sent a response that is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function send(
  request: HttpsRequest,
  isStream: boolean,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  const {
    url,
    method,
    timeoutMs,
    connections = new VerifyingHttpsAgent(request, timeoutMs),
  } = request
  const { host, hostname, port, pathname, search } = new URL(url)
  const payload = request.text ?? (request.body === undefined ? null : JSON.stringify(request.body))
  const type = request.text === undefined ? 'application/json' : 'text/plain'
  const ofBody =
    payload === null
      ? {}
      : { 'content-type': type, 'content-length': String(Buffer.byteLength(payload)) }
  return new Promise((resolve, reject) => {
    let isSent = false
    let answer: IncomingMessage | null = null
    const fail = (error: unknown): void => reject(toHttpsFault(error, isSent, timeoutMs))
    const asked = requestOf({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? 443 : Number(port),
      method,
      path: pathname + search,
      agent: connections,
      headers: { host, accept: 'application/json', ...ofBody, ...request.headers },
    })
    const giveUp = (error: Error): void => {
      fail(error)
      ;(answer ?? asked).destroy(error)
    }
    const timer = isStream ? undefined : setTimeout(() => giveUp(timeoutError()), timeoutMs)
    if (isStream) asked.setTimeout(timeoutMs, () => giveUp(timeoutError()))
    const abort = (): void => giveUp(new Error('aborted'))
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort)
    // After this event, the server is verified and the request may have been sent, so only a
    // response shows the outcome.
    asked.on('socket', () => (isSent = true))
    asked.on('response', (found) => {
      answer = found
      resolve(found)
    })
    asked.on('error', fail)
    asked.on('close', () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    })
    asked.end(payload ?? undefined)
  })
}

/** @param isSent whether the request may have reached the server. */
export function toHttpsFault(error: unknown, isSent: boolean, timeoutMs: number): HttpsFault {
  if (error instanceof HttpsFault) return error
  const isActedOn = isSent && !wantsCertificate(error)
  return new HttpsFault(reasonOf(error, timeoutMs), isActedOn, error)
}

/**
 * Whether the server requires a client certificate. With TLS 1.3, a client without a certificate
 * receives the error only after it has sent its first request, which the server does not read.
 */
function wantsCertificate(error: unknown): boolean {
  return errorCode(error) === 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'
}

const unknownCaCodes = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
])

/** Whether the request failed because the server's certificate does not chain to a trusted CA. */
export function isUnknownCa({ cause }: HttpsFault): boolean {
  return unknownCaCodes.has(errorCode(cause))
}

const NO_TLS = 'does not speak TLS; another program is listening there'
const REFUSED_HANDSHAKE =
  'refused the TLS handshake; use the HTTPS port of the controller, not its cluster or router port'

const clauses: Readonly<Record<string, string>> = {
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    'requires a client certificate; use the HTTPS port of the controller, not its cluster or router port',
  EPROTO: NO_TLS,
  ECONNREFUSED:
    'refused the connection; no controller is listening there, or a firewall rejects it',
  EHOSTUNREACH: 'is unreachable from this host; check routes and firewalls',
  ENETUNREACH: 'is unreachable from this host; check routes and firewalls',
  ENOTFOUND: 'cannot be resolved on this host; check its DNS',
  EAI_AGAIN: 'cannot be resolved on this host; check its DNS',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  CERT_HAS_EXPIRED:
    'presented an expired certificate; renew it there, or correct the clock of this host',
  CERT_NOT_YET_VALID:
    'presented a certificate that is not valid yet; correct the clock of this host',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'presented a certificate without this address; use a name that is in the certificate',
}

/** The reason as a clause that follows "<address>: it". */
function reasonOf(error: unknown, timeoutMs: number): string {
  const code = errorCode(error)
  if (code === 'ETIMEDOUT') {
    return `did not respond within ${timeoutMs / 1000} s; it may be overloaded, or a firewall may drop the packets`
  }
  if (unknownCaCodes.has(code)) {
    return 'presented a certificate of an unknown CA; it belongs to another cluster, or is not a controller'
  }
  if (clauses[code] === undefined || code === 'EPROTO') {
    // After a TLS alert: the server uses TLS, and rejects this client.
    if (code.includes('_ALERT_') || /\balert\b/.test(errorMessage(error))) return REFUSED_HANDSHAKE
    if (code.startsWith('ERR_SSL_')) return NO_TLS
  }
  return clauses[code] ?? errorMessage(error)
}
