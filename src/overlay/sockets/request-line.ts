import type { Socket } from 'node:net'

import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import { socketLimits } from './limits.ts'

const { requestLineBytesMax, requestLineMsMax } = socketLimits
const NEWLINE = 10

/** The line in which a client of the binding `transport` or `transport_udp` requests a service. */
export interface ClientRequest {
  readonly client: string
  readonly service: string
}

/** null if the line is malformed. */
export function readClientRequest(line: Uint8Array): ClientRequest | null {
  if (line.length > requestLineBytesMax) return null
  const read = parseJsonOrNull(Buffer.from(line).toString('utf8'))
  if (typeof read !== 'object' || read === null) return null
  const { id = '', svcId } = read as { readonly id?: unknown; readonly svcId?: unknown }
  if (typeof id !== 'string' || typeof svcId !== 'string' || svcId === '') return null
  return { client: id, service: svcId }
}

/** @param circuitId empty if the request was refused. */
export function connectionResponseLine(circuitId: string, text: string): Uint8Array {
  const answer = { scc: circuitId !== '', msg: text, circuitId }
  return Buffer.from(`${JSON.stringify(answer)}\n`)
}

interface RequestLine {
  readonly line: Uint8Array
  /** Bytes that arrived after the line. */
  readonly rest: Uint8Array
}

/** @returns null if the line is too long, does not arrive in time, or the socket ends before it. */
export async function readRequestLine(socket: Socket): Promise<RequestLine | null> {
  const { promise, resolve } = Promise.withResolvers<RequestLine | null>()
  let read: Buffer = Buffer.alloc(0)
  const onData = (chunk: Buffer): void => {
    read = Buffer.concat([read, chunk])
    const at = read.indexOf(NEWLINE)
    if (at >= 0 && at <= requestLineBytesMax) {
      resolve({ line: read.subarray(0, at), rest: read.subarray(at + 1) })
    } else if (read.length > requestLineBytesMax) resolve(null)
    else return
    socket.pause()
    socket.off('data', onData)
  }
  const onGone = (): void => resolve(null)
  const timer = setTimeout(onGone, requestLineMsMax)
  socket.on('data', onData)
  socket.once('end', onGone)
  socket.once('close', onGone)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    socket.off('data', onData)
    socket.off('end', onGone)
    socket.off('close', onGone)
  }
}
