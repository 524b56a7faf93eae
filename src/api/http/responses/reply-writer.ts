import type { Socket } from 'node:net'
import { STATUS_CODES } from '../../../lib/runtime/node-http.ts'
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { Problem, fieldProblem } from '../../../lib/problems.ts'
import { OIDC_FEATURE_LEVEL } from '../../../ports/feature-level.ts'
import type { ResponseCompression } from './response-compression.ts'
import { wwwAuthenticateValue } from './www-authenticate.ts'
import { sourceNetwork } from '../../../lib/bounds/source-network.ts'
import { callerAccessExpiry, type SessionTracker } from '../../../auth/sessions/session-tracker.ts'
import type { OperationCall } from '../operation.ts'
import { corsHeaders } from './cors.ts'
import type { Reply } from './envelope.ts'
import { sendStream } from '../transport/send-stream.ts'
import { endAfterRequest, hasUnreadBody } from '../transport/early-response.ts'
import {
  type ReplyBody,
  bodyByteLength,
  unreadResponsesLimitProblem,
  type UnreadResponses,
} from '../transport/unread-responses.ts'
import type { ControllerMetrics, OperationMetrics } from '../../metrics/metrics.ts'
import type { ByteStream } from '../../../ports/byte-stream.ts'
import { problemResponse } from './problem-response.ts'
import type { ClusterView } from '../../../ports/cluster-view.ts'
import type { StateView } from '../../../ports/state-view.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { ApiLimits } from '../../limits.ts'
import type { ApiVersionsKey, VersionInfo } from '../../api-deps.ts'
import type { ServiceLogger } from '../../../ports/logger.ts'
import type { AuditTrail } from '../../../ports/audit.ts'
import type { ObservationSink } from '../../../ports/observations.ts'
import type { WindowedQuota } from '../../../lib/bounds/quota.ts'

interface ReplyWriterDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly version: VersionInfo
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  readonly instanceId: string
  readonly logger: ServiceLogger
  readonly audit?: Pick<AuditTrail, 'refused' | 'answered'>
  readonly publishFact: ObservationSink
  readonly sessions: SessionTracker
  readonly metrics: ControllerMetrics
  readonly refusals: WindowedQuota
  readonly unsent: UnreadResponses
  readonly compression: ResponseCompression
}

type Headers = Record<string, string | number>

/** Writes the responses to all requests. Every response to valid HTTP has the common headers. */
export class ReplyWriter {
  readonly #deps: ReplyWriterDeps
  readonly #metrics: ControllerMetrics
  readonly #refusals: ReplyWriterDeps['refusals']
  readonly #unmatched: OperationMetrics
  readonly #server: string
  readonly #unsent: UnreadResponses

  constructor(deps: ReplyWriterDeps) {
    const { metrics, refusals, unsent } = deps
    this.#refusals = refusals
    this.#deps = deps
    this.#metrics = metrics
    this.#unmatched = metrics.of('unmatched')
    this.#server = `ziti-controller/${deps.version.version}`
    this.#unsent = unsent
  }

  succeed(reply: FastifyReply, call: OperationCall, answer: Reply): void {
    const headers = this.#headers(reply, call, answer.contentType)
    if (answer.headers !== undefined) Object.assign(headers, answer.headers)
    if (answer.stream !== undefined) this.#stream(reply, call, headers, answer.stream)
    else if (call.operation?.isCompressible === true && answer.status === 200) {
      this.#sendCompressed(reply, call, headers, answer.body)
    } else this.#send(reply, call, answer.status, headers, answer.body)
  }

  /**
   * Sends the body compressed, unless the client does not accept that, or `ResponseCompression`
   * leaves the body uncompressed.
   */
  #sendCompressed(
    reply: FastifyReply,
    call: OperationCall,
    headers: Headers,
    body: ReplyBody,
  ): void {
    const { compression } = this.#deps
    headers['vary'] = 'accept-encoding'
    const length = bodyByteLength(body)
    const coding = compression.codingFor(reply.request.headers['accept-encoding'], length)
    if (coding === null) {
      this.#send(reply, call, 200, headers, body)
      return
    }
    const { source } = call.credentials
    const { raw } = reply
    let heldBytes = 0
    const hold = (): void => {
      heldBytes = length
      this.#unsent.take(source, heldBytes)
      reply.hijack()
      // Frees the memory of the response even if the client disconnects before the response is
      // written.
      if (call.onAnswerGone !== null) raw.once('close', call.onAnswerGone)
      call.onAnswerGone = null
    }
    compression.compress(call.sharer, body, length, coding, hold, (compressed) => {
      this.#unsent.giveBack(source, heldBytes)
      if (raw.destroyed) return
      if (compressed !== null) headers['content-encoding'] = coding
      this.#send(reply, call, 200, headers, compressed ?? body)
    })
  }

  /** Closes the stream of a response that will not be sent. */
  drop({ stream }: Reply): void {
    stream?.chunks[Symbol.asyncIterator]()
      .return?.()
      .catch(() => undefined)
  }

  /**
   * Sends the error response for a thrown error, unless a response has begun. An error that is
   * neither a problem nor a known client error is logged as a bug.
   */
  fail(reply: FastifyReply, call: OperationCall, error: unknown): void {
    if (reply.raw.headersSent) return
    const problem = this.#problemOf(call, error)
    if (isRefusedWrite(call, problem)) this.#reportRefused(call, problem)
    if (call.refusalPage !== null) {
      const { status, contentType, headers, body } = call.refusalPage
      const all = { ...this.#headers(reply, call, contentType), ...headers }
      this.#send(reply, call, status, all, body)
      return
    }
    const shape = call.operation?.refusalShape ?? 'envelope'
    const { status, body, retryAfterSeconds } = problemResponse(problem, shape)
    const headers = this.#headers(reply, call, 'application/json')
    if (retryAfterSeconds !== null) headers['retry-after'] = retryAfterSeconds
    if (status === 401 && call.challenge !== null) {
      const { state, bindings } = this.#deps
      const isServed = bindings['edge-oidc'] !== undefined
      const isOidcOffered = isServed && state.featureLevel >= OIDC_FEATURE_LEVEL
      headers['www-authenticate'] = wwwAuthenticateValue(call.challenge, isOidcOffered)
    }
    this.#send(reply, call, status, headers, body)
  }

  plain(
    reply: FastifyReply,
    call: OperationCall,
    status: number,
    extra: Readonly<Record<string, string>>,
  ): void {
    const headers = { ...this.#headers(reply, call, 'text/plain'), ...extra }
    this.#send(reply, call, status, headers, '')
  }

  /**
   * Sends an error response on a connection that sent invalid HTTP or exceeded a limit. The
   * controller closes the connection afterwards, because the client may never close it.
   */
  failConnection(error: Error & { readonly code?: string }, socket: Socket): void {
    // Sends nothing while a response is in progress, because the client would take the error for a
    // part of that response.
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
      socket.destroy()
      return
    }
    const problem = new Problem('COULD_NOT_PARSE_BODY', { detail: 'malformed HTTP request' })
    const status = statusOfClientError(error.code)
    const { body } = problemResponse(problem)
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nserver: ${this.#server}\r\n` +
        `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    )
    socket.destroySoon()
    // Closes the connection after this time even if the client has not read the error, because
    // otherwise the connection could stay open forever.
    const timer = setTimeout(() => socket.destroy(), this.#deps.limits.lingerMs)
    socket.once('close', () => {
      clearTimeout(timer)
    })
  }

  #headers(reply: FastifyReply, call: OperationCall, contentType: string): Headers {
    const { cluster, state, instanceId } = this.#deps
    const index = call.index === 0 ? state.appliedIndex : call.index
    const headers: Headers = {
      'content-type': contentType,
      server: this.#server,
      'ziti-instance-id': instanceId,
      'net-index': `${cluster.generation}:${index}`,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'strict-transport-security': 'max-age=31536000',
      'net-stale-ms': Math.min(Math.round(cluster.leaderContactMs()), Number.MAX_SAFE_INTEGER),
    }
    if (call.caller?.kind === 'session') {
      const { expiresAtMs, leftSeconds } = callerAccessExpiry(this.#deps, call.caller)
      headers['expiration-seconds'] = leftSeconds
      headers['expires-at'] = goTimeText(expiresAtMs)
    }
    if (reply.request.headers.origin !== undefined) Object.assign(headers, corsHeaders)
    return headers
  }

  #send(
    reply: FastifyReply,
    call: OperationCall,
    status: number,
    headers: Headers,
    body: ReplyBody,
  ): void {
    const { raw } = reply
    const length = bodyByteLength(body)
    const { source } = call.credentials
    if (!this.#unsent.hasRoomFor(source, length)) {
      this.fail(reply, call, unreadResponsesLimitProblem())
      return
    }
    this.#record(call, status)
    if (status === 304) delete headers['content-type']
    else headers['content-length'] = length
    // Closes the connection after an error response if the client has not sent its whole body: to
    // keep the connection, the controller would have to read the rest of the body.
    const isEarly = status >= 400 && hasUnreadBody(reply.request.raw)
    if (isEarly) headers['connection'] = 'close'
    reply.hijack()
    if (call.onAnswerGone !== null) raw.once('close', call.onAnswerGone)
    raw.writeHead(status, headers)
    if (call.method === 'HEAD') {
      raw.end()
      return
    }
    if (!isEarly) {
      this.#unsent.send(raw, source, body, length)
      return
    }
    this.#unsent.send(raw, source, body, length, (piece, encoding) => {
      raw.write(piece, encoding)
      endAfterRequest(reply.request.raw, raw, this.#deps.limits)
    })
  }

  #record(call: OperationCall, status: number): void {
    const { method, operation, startedAtMs, caller } = call
    const metrics = operation === null ? this.#unmatched : this.#metrics.of(operation.operationId)
    const tookMs = this.#deps.clock.monotonicMs() - startedAtMs
    metrics.record(status, tookMs)
    const { address } = call.credentials
    const { metadata } = call
    this.#deps.audit?.answered({
      method,
      operation: operation?.operationId ?? 'none',
      status,
      tookMs,
      address,
      trace: () => metadata.trace,
      // Traces a request only for an authenticated caller. Otherwise anyone could make this
      // controller write a log line for each request.
      isTraced: metadata.isTraceShown && metadata.trace.isSampled && caller !== null,
    })
  }

  /**
   * Sends a stream. If it fails, closes the connection, so that the client cannot take an
   * incomplete body for a complete one.
   */
  #stream(reply: FastifyReply, call: OperationCall, headers: Headers, stream: ByteStream): void {
    const { raw } = reply
    this.#record(call, 200)
    reply.hijack()
    raw.writeHead(200, headers)
    sendStream(raw, stream, this.#deps.limits.answerStallMs).catch((error: unknown) => {
      const operation = call.operation?.operationId ?? 'none'
      this.#deps.logger.error({ err: error, operation }, 'a response was cut off before its end')
    })
  }

  #reportRefused(call: OperationCall, { code, refusal }: Problem): void {
    const { caller, operation } = call
    const { address } = call.credentials
    const { trace } = call.metadata
    // @guard refusals-fill-the-log
    if (!this.#refusals.take(caller?.identity.id ?? sourceNetwork(address))) return
    const method = operation?.logInMethod?.(call)
    if (method !== undefined) {
      const { reason = code, signerId = '', claim = '' } = refusal ?? {}
      this.#deps.publishFact({ kind: 'logInFailed', method, address, reason, signerId, claim })
    }
    this.#deps.audit?.refused({
      actor: caller?.identity.id ?? '',
      actorName: caller?.identity.name ?? '',
      session: caller?.session.id ?? '',
      address,
      operation: operation?.operationId ?? '',
      outcome: code,
      ...(refusal === null ? {} : { refusal }),
      traceId: trace.traceId,
    })
  }

  #problemOf(call: OperationCall, error: unknown): Problem {
    if (error instanceof Problem) return error
    const known = problemOfFramework(error)
    if (known !== null) return known
    const operation = call.operation?.operationId ?? 'none'
    this.#deps.logger.error(
      { err: error, operation, path: call.path, traceId: call.metadata.trace.traceId },
      'unhandled error while serving a request',
    )
    return new Problem('UNHANDLED', { cause: error })
  }
}

/**
 * True if a write was refused because of its caller: an authenticated caller without permission, or
 * invalid credentials of a log-in or an enrollment. Other requests without a valid session are not
 * logged, because they could fill the log. The state machine adds proposed writes to the audit log.
 */
function isRefusedWrite(call: OperationCall, { code, refusal }: Problem): boolean {
  if (call.operation === null || call.method === 'GET' || call.proposed !== null) return false
  // A refused enrollment has a `refusal` only if the request contained a token.
  if (code === 'INVALID_AUTH' || (code === 'INVALID_ENROLLMENT_JWT' && refusal !== null))
    return true
  return code === 'UNAUTHORIZED' && (call.caller !== null || isRefusedLogIn(call, refusal))
}

/**
 * Whether a log-in was refused because of a token of an identity provider. The error code alone
 * does not show this, because an invalid session has the same code.
 */
function isRefusedLogIn({ challenge }: OperationCall, refusal: Problem['refusal']): boolean {
  if (challenge === null || typeof challenge === 'string') return false
  return challenge.realm === 'openziti-primary-ext-jwt' && refusal?.reason !== 'TOKEN_MISSING'
}

function problemOfFramework(error: unknown): Problem | null {
  const { code, statusCode } = error as { readonly code?: unknown; readonly statusCode?: unknown }
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new Problem('REQUEST_ENTITY_TOO_LARGE')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new Problem('UNSUPPORTED_CONTENT_TYPE', {
        fault: { field: 'Content-Type', reason: 'must be application/json' },
      })
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new Problem('NOT_FOUND', { detail: 'path parameter too long' })
    case 'FST_ERR_BAD_URL':
      return fieldProblem('path', 'is not a valid URL path')
    default:
      return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500
        ? new Problem('COULD_NOT_PARSE_BODY', { cause: error })
        : null
  }
}

/**
 * Whether a response is in progress on the connection. Node.js stores that response in a member of
 * the socket, and itself checks this member before it sends errors.
 */
function isAnswering(socket: Socket & { readonly _httpMessage?: ServerResponse | null }): boolean {
  return socket._httpMessage?.headersSent === true
}

function statusOfClientError(code: string | undefined): number {
  if (code === 'HPE_HEADER_OVERFLOW') return 431
  return code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400
}

/**
 * Formats a time as `2024-01-02 03:04:05.678 +0000 UTC`, Go's format, which OpenZiti clients expect
 * in the header `expires-at`.
 */
function goTimeText(ms: number): string {
  const whole = Math.floor(ms)
  const millis = whole % 1000
  const second = (whole - millis) / 1000
  // Formats each second once, for all responses within that second.
  if (second !== shownSecond.second) {
    const text = new Date(whole - millis).toISOString()
    shownSecond = { second, text: `${text.slice(0, 10)} ${text.slice(11, 19)}` }
  }
  // Go omits trailing zeros of the fraction.
  const fraction = millis === 0 ? '' : `.${String(millis).padStart(3, '0').replace(/0+$/, '')}`
  return `${shownSecond.text}${fraction} +0000 UTC`
}

let shownSecond = { second: Number.NaN, text: '' }
