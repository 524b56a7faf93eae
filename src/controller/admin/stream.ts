import { once } from 'node:events'
import type { Socket } from 'node:net'

/**
 * What a verb answers with that is too large for a line. On the wire: a line `{"ok": true, "data": {"isStream": true}}`, then parts,
 * each u32 (little endian) bytes and as many bytes, a part of 0 bytes, and at last the line of the answer itself.
 */
export class AdminStream {
  readonly chunks: AsyncIterable<Uint8Array>
  /** Asked once all chunks were taken. */
  readonly result: () => unknown

  constructor(chunks: AsyncIterable<Uint8Array>, result: () => unknown) {
    this.chunks = chunks
    this.result = result
  }
}

/** The line that announces it. */
export const STREAM_BEGINS = { isStream: true } as const
/** Of one part. */
export const STREAM_PART_BYTES_MAX = 16 * 1024 * 1024
export const PART_HEAD_BYTES = 4

export function partHead(length: number): Buffer {
  const head = Buffer.alloc(PART_HEAD_BYTES)
  head.writeUInt32LE(length)
  return head
}

/** Sends the parts no faster than they are read. Ends early where the socket is closed. @throws what the chunks throw. */
export async function sendParts(socket: Socket, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of chunks) {
    if (socket.destroyed) return
    if (chunk.length === 0) continue
    socket.write(partHead(chunk.length))
    if (!socket.write(chunk)) await drained(socket)
    // Whatever else this thread has to do comes between two parts.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function drained(socket: Socket): Promise<void> {
  const over = new AbortController()
  try {
    await Promise.race([
      once(socket, 'drain', { signal: over.signal }),
      once(socket, 'close', { signal: over.signal }),
    ])
  } finally {
    over.abort()
  }
}
