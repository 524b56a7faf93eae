import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'

/** Responses to requests whose clients wait for `100 Continue` before they send the body. */
const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * Passes requests with an `Expect` header to the same handler as all other requests. By default,
 * Node.js would send `100 Continue`, or a bare 417, before the caller is authenticated.
 */
export function handleExpectRequests(server: Server, handler: RequestListener): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    waiting.set(request, response)
    handler(request, response)
  })
  server.on('checkExpectation', handler)
}

/**
 * Sends `100 Continue` if the client waits for it. Call this function after the request head was
 * checked.
 */
export function sendContinue(request: IncomingMessage): void {
  const response = waiting.get(request)
  if (response === undefined) return
  waiting.delete(request)
  response.writeContinue()
}

/** Whether the client waits for `100 Continue`, so that it has not sent the body yet. */
export function awaitsContinue(request: IncomingMessage): boolean {
  return waiting.has(request)
}

/** Whether the request expects something other than `100-continue` (RFC 9110, 10.1.1). */
export function hasUnknownExpectation({ headers }: IncomingMessage): boolean {
  const { expect } = headers
  return expect !== undefined && expect.toLowerCase() !== '100-continue'
}
