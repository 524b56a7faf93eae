import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ApiLimits } from '../../limits.ts'
import { awaitsContinue } from './expect-continue.ts'

type LingerLimits = Pick<ApiLimits, 'lingerBytesMax' | 'lingerMs'>

/** Whether the client may still be sending a body that no code will read. */
export function hasUnreadBody({ complete, readableEnded, headers }: IncomingMessage): boolean {
  if (complete || readableEnded) return false
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/**
 * Ends a response that was sent while the client is still sending its request. Closing the
 * connection immediately would reset it, and the client might receive the reset before the response
 * (RFC 9112, 9.6). So the controller first reads and discards received data, until the request ends
 * or a limit of bytes or time is reached; not if the client waits for `100 Continue`, because such
 * a client sends no body yet.
 */
export function endAfterRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { lingerBytesMax, lingerMs }: LingerLimits,
): void {
  if (awaitsContinue(request)) {
    response.end()
    return
  }
  let dropped = 0
  const timer = setTimeout(end, lingerMs)
  function end(): void {
    clearTimeout(timer)
    request.off('data', onData)
    response.end()
  }
  function onData(chunk: Buffer): void {
    dropped += chunk.length
    if (dropped > lingerBytesMax) end()
  }
  request.on('data', onData)
  request.once('end', end)
  request.once('close', end)
  // Resumes the stream, because an aborted read may have left it paused.
  request.resume()
}
