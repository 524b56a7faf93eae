import { connect } from 'node:net'
import type { Socket } from 'node:net'

import { ownCaller } from '../../controller/admin/caller.ts'
import {
  ADMIN_ANSWER_BYTES_MAX,
  adminSocketAddress,
  LineSplitter,
} from '../../controller/admin/protocol.ts'
import type { AdminAnswer } from '../../controller/admin/protocol.ts'

/** The controller refused, or cannot be asked. `code` is the controller's, or NOT_RUNNING, NO_PERMISSION, NO_ANSWER. */
export class AdminError extends Error {
  override readonly name = 'AdminError'
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/**
 * Asks the controller whose data folder this is.
 * @throws {AdminError}
 */
export async function askController(
  dataFolder: string,
  verb: string,
  params: Readonly<Record<string, unknown>> = {},
  timeoutMs = 15_000,
): Promise<unknown> {
  const answer = await exchange(
    dataFolder,
    `${JSON.stringify({ verb, params, caller: ownCaller() })}\n`,
    timeoutMs,
  )
  if (!answer.ok) throw new AdminError(answer.code, answer.message)
  return answer.data
}

async function exchange(dataFolder: string, line: string, timeoutMs: number): Promise<AdminAnswer> {
  const address = addressOf(dataFolder)
  const socket = connect(address.path)
  try {
    return await new Promise<AdminAnswer>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(
          new AdminError('NO_ANSWER', `no response from the controller within ${timeoutMs} ms`),
        )
      }, timeoutMs)
      socket.once('close', () => {
        clearTimeout(timer)
        reject(
          new AdminError('NO_ANSWER', 'the controller closed the connection without a response'),
        )
      })
      socket.once('error', (error) => reject(connectError(error, dataFolder)))
      receiveAnswer(socket, resolve, reject)
      socket.write(line)
    })
  } finally {
    socket.destroy()
    address.release()
  }
}

export function addressOf(dataFolder: string): ReturnType<typeof adminSocketAddress> {
  try {
    return adminSocketAddress(dataFolder)
  } catch (error) {
    throw connectError(error, dataFolder)
  }
}

function receiveAnswer(
  socket: Socket,
  resolve: (answer: AdminAnswer) => void,
  reject: (error: AdminError) => void,
): void {
  const lines = new LineSplitter(ADMIN_ANSWER_BYTES_MAX)
  socket.on('data', (chunk: Buffer) => {
    try {
      const [first] = lines.push(chunk)
      if (first !== undefined) resolve(JSON.parse(first) as AdminAnswer)
    } catch (error) {
      reject(new AdminError('NO_ANSWER', 'malformed response from the controller', error))
    }
  })
}

export function connectError(error: unknown, dataFolder: string): AdminError {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return new AdminError('NOT_RUNNING', `no controller is running on ${dataFolder}`, error)
  }
  if (code === 'EACCES' || code === 'EPERM') {
    const message = `no permission to open the admin socket in ${dataFolder}; run this as the user that runs the controller`
    return new AdminError('NO_PERMISSION', message, error)
  }
  return new AdminError('NO_ANSWER', `the admin socket in ${dataFolder} failed: ${String(error)}`)
}
