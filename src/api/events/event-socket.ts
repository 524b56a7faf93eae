import type { IncomingMessage, Server } from 'node:http'
import { STATUS_CODES } from '../../lib/runtime/node-http.ts'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import { fieldProblem, Problem, type ProblemCode } from '../../lib/problems.ts'
import type { EventNamespace } from '../../lib/event-namespaces.ts'
import { type EventStreams, RECORD_NAMESPACES } from '../../ports/events.ts'
import { problemResponse } from '../http/responses/problem-response.ts'
import type { CallerCredentials } from '../../auth/principal/credentials.ts'
import type { Caller } from '../../auth/principal/principal.ts'
import { admitHostUser } from '../../auth/principal/host-user.ts'
import { createNetworkValidations, type ValidationDeps } from '../fabric/validations.ts'
import { basePaths } from '../http/paths.ts'
import { requestCredentials, type AdminSocketCallerFinder } from '../http/transport/request-head.ts'
import { EVENTS_PERMISSION, canSeeEvents, createEventReader } from './event-access.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { RequestAuthenticator } from '../../auth/sessions/request-authenticator.ts'

interface TakeEventSocketsDeps extends ValidationDeps {
  readonly logger: ServiceLogger
  readonly events: EventStreams
  readonly refusal: () => ProblemCode | null
  readonly gate: RequestAuthenticator
}

/** Path at which the OpenZiti CLI opens its management channel. */
const EVENT_SOCKET_PATH = `${basePaths.fabric}/ws-api`
const WEB_SOCKET_VERSION = '13'
/** Matches 16 bytes in base64, the form of `Sec-WebSocket-Key` (RFC 6455, 4.1). */
const KEY = /^[A-Za-z0-9+/]{22}==$/

/**
 * Whether an upgrade request is for the event socket; other upgrade requests are handled as
 * ordinary requests.
 */
export function isEventSocket({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
  return url === EVENT_SOCKET_PATH || url.startsWith(`${EVENT_SOCKET_PATH}?`)
}

/**
 * Serves event streams over WebSockets, with the same session and permission checks as other
 * requests.
 * @param socketCaller identifies callers that have no session; set only at the admin socket.
 */
export function serveEventSockets(
  server: Server,
  deps: TakeEventSocketsDeps,
  socketCaller: AdminSocketCallerFinder | null,
): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Handles a socket error without logging it, because a client may disconnect while its request
    // is checked.
    socket.on('error', () => socket.destroy())
    const opened = { request, socket: socket as Socket, head }
    void admit(opened, deps, socketCaller).catch((error: unknown) => {
      refuse(socket, error, deps)
    })
  })
}

/** The operation whose permission a client needs. */
const wanted = { api: 'fabric', method: 'GET' } as const

interface Opened {
  readonly request: IncomingMessage
  readonly socket: Socket
  /** Bytes that the client has sent after the upgrade request. */
  readonly head: Buffer
}

async function admit(
  { request, socket, head }: Opened,
  deps: TakeEventSocketsDeps,
  socketCaller: AdminSocketCallerFinder | null,
): Promise<void> {
  if (!isEventSocket(request)) throw new Problem('NOT_FOUND')
  const refusal = deps.refusal()
  if (refusal !== null) throw new Problem(refusal)
  const credentials = requestCredentials(request, socketCaller)
  const caller = await callerOf(credentials, deps)
  checkUpgrade(request)
  let isOfRecords = false
  const reader = createEventReader(caller, wanted, deps, () => isOfRecords)
  const permits = (namespace: EventNamespace): boolean => {
    if (!canSeeEvents(caller, wanted, namespace)) return false
    isOfRecords ||= RECORD_NAMESPACES.has(namespace)
    return true
  }
  const validations = createNetworkValidations(deps, caller)
  if (!socket.destroyed)
    deps.events.upgrade({ request, socket, head }, reader, permits, validations)
}

/** @throws {Problem} UNAUTHORIZED. */
async function callerOf(
  credentials: CallerCredentials,
  { gate }: TakeEventSocketsDeps,
): Promise<Caller> {
  const user = admitHostUser(credentials, EVENTS_PERMISSION)
  if (user !== null) return user
  const admission = await gate.admit(credentials, { ...wanted, permission: EVENTS_PERMISSION })
  if (!admission.isAdmitted || admission.principal.kind !== 'session') {
    throw new Problem('UNAUTHORIZED')
  }
  return admission.principal
}

/** @throws {Problem} COULD_NOT_VALIDATE if the request is not a valid WebSocket handshake. */
function checkUpgrade({ headers, method }: IncomingMessage): void {
  const key = headers['sec-websocket-key'] ?? ''
  if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') {
    throw fieldProblem('Upgrade', 'must be websocket, in a GET')
  }
  if (headers['sec-websocket-version'] !== WEB_SOCKET_VERSION) {
    throw fieldProblem('Sec-WebSocket-Version', `must be ${WEB_SOCKET_VERSION}`)
  }
  if (KEY.test(key)) return
  throw fieldProblem('Sec-WebSocket-Key', 'must be 16 bytes as base64')
}

function refuse(socket: Duplex, error: unknown, { logger }: TakeEventSocketsDeps): void {
  if (!(error instanceof Problem)) logger.error({ err: error }, 'unhandled error on a web socket')
  const { status, body } = problemResponse(
    error instanceof Problem ? error : new Problem('UNHANDLED'),
  )
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
  // Closes the connection after this time if the client does not close it.
  const timer = setTimeout(() => socket.destroy(), CLOSE_MS)
  socket.once('close', () => clearTimeout(timer))
}

const CLOSE_MS = 2000
