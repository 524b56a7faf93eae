import { request } from '../../lib/node-http.ts'
import type { IncomingMessage } from 'node:http'

import { callerHeader } from '../../controller/admin/caller.ts'
import { adminSocketAddress } from '../../controller/admin/socket-address.ts'
import { askJson, HttpsFault } from './https.ts'
import { versionOfEarlier } from './earlier-release.ts'
import { errorCodeIn, refusalOf } from '../cluster/refusal.ts'
import { errorCode } from '../../lib/error-code.ts'
import { jsonOrNull } from '../../lib/text/json-or-null.ts'

const ANSWER_BYTES_MAX = 16 * 1024 * 1024
const REFUSAL_BYTES_MAX = 64 * 1024
const TIMEOUT_MS = 15_000

/**
 * The controller refused, or cannot be asked. `code` is the controller's, or NOT_RUNNING,
 * NO_PERMISSION, NO_ANSWER, OTHER_VERSION.
 */
export class AdminError extends Error {
  override readonly name = 'AdminError'
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/** One operation of the API. */
export interface AdminRequest {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly path: string
  readonly body?: unknown
  readonly timeoutMs?: number
}

/**
 * Asks the controller whose data folder this is, at its admin socket.
 * @returns the data of its answer.
 * @throws {AdminError}
 */
export async function askController(
  dataFolder: string,
  { method, path, body, timeoutMs = TIMEOUT_MS }: AdminRequest,
): Promise<unknown> {
  const address = addressOf(dataFolder)
  try {
    const answer = await askJson({
      socketPath: address.path,
      url: `http://localhost${path}`,
      method,
      timeoutMs,
      ...(method !== 'GET' && body !== undefined ? { body } : {}),
      headers: callerHeader(),
      answerBytesMax: ANSWER_BYTES_MAX,
    })
    if (answer.status >= 200 && answer.status < 300) {
      return (answer.body as { readonly data?: unknown } | null)?.data ?? null
    }
    throw new AdminError(errorCodeIn(answer.body), refusalOf(answer.status, answer.body))
  } catch (error) {
    if (!(error instanceof HttpsFault)) throw error
    throw await faultOf(error.cause, dataFolder, address.path, timeoutMs)
  } finally {
    address.release()
  }
}

/**
 * Asks for an answer that is handed over as it is made.
 * @param silenceMsMax between two pieces of it.
 * @throws {AdminError} also when the controller ends the answer before it is whole.
 */
export async function* askForStream(
  dataFolder: string,
  { path, body = {} }: Pick<AdminRequest, 'path' | 'body'>,
  silenceMsMax = 60_000,
): AsyncGenerator<Uint8Array, void> {
  const address = addressOf(dataFolder)
  const payload = JSON.stringify(body)
  const asked = request({
    socketPath: address.path,
    method: 'POST',
    path,
    agent: false,
    headers: {
      ...callerHeader(),
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(payload)),
    },
  })
  asked.setTimeout(silenceMsMax, () => {
    asked.destroy(Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' }))
  })
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      asked.on('response', resolve)
      asked.on('error', reject)
      asked.end(payload)
    })
    if (answer.statusCode !== 200) throw await refusalIn(answer)
    for await (const chunk of answer) yield chunk as Buffer
    if (!answer.complete) throw cutOff()
  } catch (error) {
    if (error instanceof AdminError) throw error
    throw await faultOf(error, dataFolder, address.path, silenceMsMax)
  } finally {
    asked.destroy()
    address.release()
  }
}

async function refusalIn(answer: IncomingMessage): Promise<AdminError> {
  let text = ''
  for await (const chunk of answer) {
    text += (chunk as Buffer).toString()
    if (text.length > REFUSAL_BYTES_MAX) break
  }
  const status = answer.statusCode ?? 0
  const body = jsonOrNull(text)
  return new AdminError(errorCodeIn(body), refusalOf(status, body))
}

function addressOf(dataFolder: string): ReturnType<typeof adminSocketAddress> {
  try {
    return adminSocketAddress(dataFolder)
  } catch (error) {
    throw connectError(error, dataFolder)
  }
}

async function faultOf(
  error: unknown,
  dataFolder: string,
  socketPath: string,
  timeoutMs: number,
): Promise<AdminError> {
  const code = errorCode(error)
  // What came is no HTTP.
  if (code.startsWith('HPE_')) {
    const version = await versionOfEarlier(socketPath)
    const which = version === null ? 'another version' : `version ${version}`
    return new AdminError(
      'OTHER_VERSION',
      `this controller runs ${which}; use its own flotilla`,
      error,
    )
  }
  if (code === 'ETIMEDOUT') {
    const message = `no response from the controller within ${timeoutMs} ms`
    return new AdminError('NO_ANSWER', message, error)
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') return cutOff(error)
  return connectError(error, dataFolder)
}

function cutOff(cause?: unknown): AdminError {
  const message =
    'the controller closed the connection before the end of its answer; its log says why'
  return new AdminError('NO_ANSWER', message, cause)
}

function connectError(error: unknown, dataFolder: string): AdminError {
  const code = errorCode(error)
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return new AdminError('NOT_RUNNING', `no controller is running on ${dataFolder}`, error)
  }
  if (code === 'EACCES' || code === 'EPERM') {
    const message = `no permission to open the admin socket in ${dataFolder}; run this as the user that runs the controller`
    return new AdminError('NO_PERMISSION', message, error)
  }
  return new AdminError('NO_ANSWER', `the admin socket in ${dataFolder} failed: ${String(error)}`)
}
