import type { Socket } from 'node:net'

interface Incomplete {
  readonly kind: 'incomplete'
  /** How many bytes the next attempt needs at least. */
  readonly bytesNeeded: number
}

/**
 * Reads the start of a connection until `decode` has a result. Calls back at most once, with all
 * bytes that it has read from the socket.
 */
export function readUntilDecoded<T extends { readonly kind: string }>(
  socket: Socket,
  decode: (bytes: Buffer) => T | Incomplete,
  done: (opening: Exclude<T, Incomplete>, bytes: Buffer) => void,
): void {
  const chunks: Buffer[] = []
  let length = 0
  let bytesNeeded = 1
  const onReadable = (): void => {
    const chunk = socket.read() as Buffer | null
    if (chunk === null) return
    chunks.push(chunk)
    length += chunk.length
    if (length < bytesNeeded) return
    const bytes = Buffer.concat(chunks)
    const opening = decode(bytes)
    if (isIncomplete(opening)) {
      bytesNeeded = opening.bytesNeeded
      return
    }
    socket.off('readable', onReadable)
    done(opening as Exclude<T, Incomplete>, bytes)
  }
  socket.on('readable', onReadable)
}

function isIncomplete(opening: { readonly kind: string }): opening is Incomplete {
  return opening.kind === 'incomplete'
}
