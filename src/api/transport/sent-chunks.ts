import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

/**
 * Sends the chunks no faster than they are read, and ends the response. Ends early where the client has gone; where it reads
 * nothing for `stallMsMax`, or a chunk cannot be made, the connection is destroyed.
 * @throws what the chunks throw.
 */
export async function sendChunks(
  response: ServerResponse,
  chunks: AsyncIterable<Uint8Array>,
  stallMsMax: number,
): Promise<void> {
  try {
    for await (const chunk of chunks) {
      if (response.destroyed) return
      if (!response.write(chunk)) await drained(response, stallMsMax)
      // Whatever else this thread has to do comes between two chunks.
      await setImmediate()
    }
    response.end()
  } catch (error) {
    response.destroy()
    throw error
  }
}

async function drained(response: ServerResponse, stallMsMax: number): Promise<void> {
  const over = new AbortController()
  const timer = setTimeout(() => response.destroy(), stallMsMax)
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
