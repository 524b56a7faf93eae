import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

import type { ByteStream } from '../../../ports/byte-stream.ts'

/**
 * Sends a stream no faster than the client reads, ends the response, and waits until it is
 * complete. If the client disconnects, closes the stream. If the client reads nothing for too long,
 * or the stream fails, destroys the connection.
 * @param stallMsMax maximum time in which the client reads nothing. While chunks are sent, it
 * applies only to a stream without `giveUp`; other streams detect slow readers themselves.
 * @throws the error with which the stream fails.
 */
export async function sendStream(
  response: ServerResponse,
  { chunks, giveUp }: ByteStream,
  stallMsMax: number,
): Promise<void> {
  keepOpen(response)
  const pieces = chunks[Symbol.asyncIterator]()
  const destroy = (): void => void response.destroy()
  giveUp?.addEventListener('abort', destroy)
  const sent = sendAll(response, pieces, giveUp === undefined ? stallMsMax : null).then(
    () => endWithin(response, stallMsMax),
    (error: unknown) => {
      response.destroy()
      throw error
    },
  )
  // Closes the stream when the client disconnects; otherwise a stream that sends nothing would not
  // notice the disconnect.
  const left = closed(response).then(() => pieces.return?.())
  try {
    await Promise.all([sent, left])
  } finally {
    giveUp?.removeEventListener('abort', destroy)
  }
}

async function sendAll(
  response: ServerResponse,
  pieces: AsyncIterator<Uint8Array>,
  stallMsMax: number | null,
): Promise<void> {
  for (;;) {
    const { done, value } = await pieces.next()
    if (done === true || response.destroyed) return
    if (!response.write(value)) await drained(response, stallMsMax)
    // Lets other work of this thread run between two chunks.
    await setImmediate()
  }
}

async function drained(response: ServerResponse, stallMsMax: number | null): Promise<void> {
  const over = new AbortController()
  const timer = stallMsMax === null ? undefined : setTimeout(() => response.destroy(), stallMsMax)
  try {
    await Promise.race([
      once(response, 'drain', { signal: over.signal }),
      once(response, 'close', { signal: over.signal }),
    ])
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}

/**
 * Sends each chunk without delay, and the head before the first chunk. Disables the idle timeout of
 * the connection.
 */
function keepOpen(response: ServerResponse): void {
  response.flushHeaders()
  const { socket } = response
  if (!(socket instanceof Socket)) return
  socket.setNoDelay(true)
  socket.setTimeout(0)
}

/**
 * Ends the response, and closes the connection if the client does not read the last bytes in time.
 */
function endWithin(response: ServerResponse, msMax: number): void {
  if (response.destroyed) return
  const timer = setTimeout(() => response.destroy(), msMax)
  for (const end of ['finish', 'close']) response.once(end, () => clearTimeout(timer))
  response.end()
}

function closed(response: ServerResponse): Promise<void> {
  if (response.destroyed) return Promise.resolve()
  return new Promise((resolve) => void response.once('close', resolve))
}
