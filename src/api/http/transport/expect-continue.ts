import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'

/** Responses to requests whose client waits for `100 Continue` before it sends the body. */
const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Passes requests with an `Expect` header to the same handler as all others. By default, Node.js
 * would send `100 Continue`, or a bare 417, before the caller is authenticated.
 */
export function handleExpectRequests(server: Server, handler: RequestListener): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    waiting.set(request, response)
    handler(request, response)
  })
  server.on('checkExpectation', handler)
}

/** Sends `100 Continue` if the client waits for it. Call it after the request head was checked. */
export function sendContinue(request: IncomingMessage): void {
  const response = waiting.get(request)
  if (response === undefined) return
  waiting.delete(request)
  response.writeContinue()
}

/** Whether the client waits for `100 Continue`, and so has not sent the body. */
export function awaitsContinue(request: IncomingMessage): boolean {
  return waiting.has(request)
}

/** Whether the request expects something other than `100-continue` (RFC 9110, 10.1.1). */
export function hasUnknownExpectation({ headers }: IncomingMessage): boolean {
  const { expect } = headers
  return expect !== undefined && expect.toLowerCase() !== '100-continue'
}
