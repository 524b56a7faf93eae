import { adminCallerHeader } from '../../controller/admin/caller.ts'
import { adminSocketAddress } from '../../controller/admin/socket-address.ts'
import { errorCode } from '../../lib/error-code.ts'
import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import {
  sendHttpsRequest,
  openHttpsStream,
  HttpsFault,
  type HttpsRequest,
  readResponseText,
} from './https-request.ts'
import { parseApiRefusal } from './api-refusal.ts'

const ANSWER_BYTES_MAX = 16 * 1024 * 1024
const REFUSAL_BYTES_MAX = 64 * 1024
const TIMEOUT_MS = 15_000

/**
 * The controller refused the request, or sent no complete response. `code` is the code from the
 * controller, or NOT_RUNNING, NO_PERMISSION, NO_ANSWER, OTHER_VERSION.
 */
export class AdminSocketError extends Error {
  override readonly name = 'AdminSocketError'
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/** A request for an API operation, sent through the admin socket. */
export interface AdminSocketRequest {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly body?: unknown
  readonly timeoutMs?: number
  /** True when any controller of the cluster can respond instead of the named one. */
  readonly isOfAny?: boolean
}

/**
 * Sends a request to the admin socket of the controller with this data folder.
 * @returns the data of the response.
 * @throws {AdminSocketError}
 */
export async function sendToAdminSocket(
  dataFolder: string,
  { method, path, body, timeoutMs = TIMEOUT_MS }: AdminSocketRequest,
): Promise<unknown> {
  return await atSocket(dataFolder, timeoutMs, async (socket) => {
    const sent = method === 'GET' ? {} : { body }
    const answer = await sendHttpsRequest(
      { ...socket, ...sent, url: url(path), method },
      ANSWER_BYTES_MAX,
    )
    if (answer.status < 200 || answer.status >= 300) throw refused(answer.status, answer.body)
    return (answer.body as { readonly data?: unknown } | null)?.data ?? null
  })
}

/**
 * Sends a request and yields the parts of the response as they arrive.
 * @param silenceMsMax maximum time without data.
 * @throws {AdminSocketError} also when the controller ends the response early.
 */
export async function* streamFromAdminSocket(
  dataFolder: string,
  { path, body = {} }: Pick<AdminSocketRequest, 'path' | 'body'>,
  silenceMsMax = 60_000,
): AsyncGenerator<Uint8Array, void> {
  const answer = await atSocket(dataFolder, silenceMsMax, async (socket) => {
    const found = await openHttpsStream({ ...socket, url: url(path), method: 'POST', body })
    const status = found.statusCode ?? 0
    if (status === 200) return found
    throw refused(status, parseJsonOrNull(await readResponseText(found, REFUSAL_BYTES_MAX)))
  })
  try {
    for await (const chunk of answer) yield chunk as Buffer
    if (!answer.complete) throw cutOff()
  } catch (error) {
    throw adminErrorOf(error, dataFolder, silenceMsMax)
  } finally {
    answer.destroy()
  }
}

type AtSocket = Pick<HttpsRequest, 'socketPath' | 'headers' | 'timeoutMs'>

async function atSocket<T>(
  dataFolder: string,
  timeoutMs: number,
  step: (socket: AtSocket) => Promise<T>,
): Promise<T> {
  const address = addressOf(dataFolder)
  try {
    return await step({ socketPath: address.path, headers: adminCallerHeader(), timeoutMs })
  } catch (error) {
    throw adminErrorOf(error, dataFolder, timeoutMs)
  } finally {
    address.release()
  }
}

function url(path: string): string {
  return `http://localhost${path}`
}

function refused(status: number, body: unknown): AdminSocketError {
  const { code, message } = parseApiRefusal(status, body)
  return new AdminSocketError(code, message)
}

function addressOf(dataFolder: string): ReturnType<typeof adminSocketAddress> {
  try {
    return adminSocketAddress(dataFolder)
  } catch (error) {
    throw connectError(error, dataFolder)
  }
}

function adminErrorOf(error: unknown, dataFolder: string, timeoutMs: number): AdminSocketError {
  if (error instanceof AdminSocketError) return error
  const cause = error instanceof HttpsFault ? error.cause : error
  const code = errorCode(cause)
  if (code.startsWith('HPE_')) {
    const message =
      'this controller does not answer in HTTP, as version 0.1.0 does not; use its own flotilla'
    return new AdminSocketError('OTHER_VERSION', message, cause)
  }
  if (code === 'ETIMEDOUT') {
    const message = `no response from the controller within ${timeoutMs} ms`
    return new AdminSocketError('NO_ANSWER', message, cause)
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') return cutOff(cause)
  return connectError(cause, dataFolder)
}

function cutOff(cause?: unknown): AdminSocketError {
  const message =
    'the controller closed the connection before the end of its answer; its log says why'
  return new AdminSocketError('NO_ANSWER', message, cause)
}

function connectError(error: unknown, dataFolder: string): AdminSocketError {
  const code = errorCode(error)
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return new AdminSocketError('NOT_RUNNING', `no controller is running on ${dataFolder}`, error)
  }
  if (code === 'EACCES' || code === 'EPERM') {
    const message = `no permission to open the admin socket in ${dataFolder}; run this as the user that runs the controller`
    return new AdminSocketError('NO_PERMISSION', message, error)
  }
  return new AdminSocketError(
    'NO_ANSWER',
    `the admin socket in ${dataFolder} failed: ${String(error)}`,
  )
}
