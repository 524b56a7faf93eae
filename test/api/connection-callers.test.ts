import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'

import { ConnectionCallers } from '../../src/api/http/transport/connection-callers.ts'
import { ProcessorShare } from '../../src/lib/bounds/processor-share.ts'

// Goal: a new request on a connection waits for the processor share of the caller of the
// connection's last request, and of no other caller.

const limits = {
  processorBurstMs: 20,
  processorSliceMs: 3,
  processorCallersMax: 100,
  waitingRequestsMax: 4,
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * A connection of the caller alice, who has used up her share of the processor; the test controls
 * the clock.
 */
function usedUp() {
  let nowMs = 0
  const clock = { monotonicMs: () => nowMs }
  const share = new ProcessorShare(limits, clock)
  const callers = new ConnectionCallers(share, clock)
  const socket = { destroyed: false }
  const request = (headers: object = { 'zt-session': 'of alice' }): IncomingMessage =>
    ({ socket, headers }) as unknown as IncomingMessage
  const pass = (ms: number): void => {
    nowMs += ms
  }
  callers.know(request(), 'alice')
  share.run('alice', () => pass(30))
  return { callers, socket, request, pass, share }
}

test('a request with the same session as the previous request on its connection waits for its caller’s share of the processor, and the time at which the wait began can be read once', async () => {
  const { callers, request, pass } = usedUp()
  const begun: (number | null)[] = []
  callers.begin(request(), () => begun.push(callers.takeWait(request())))
  pass(5)
  expect(begun).toEqual([])
  await turn()
  expect(begun).toEqual([30])
  expect(callers.takeWait(request())).toBeNull()
})

test.each([
  { 'zt-session': 'of bob' },
  { 'net-session': 'of bob', 'zt-session': 'of alice' },
  { authorization: 'Bearer of bob', 'zt-session': 'of alice' },
  {},
])(
  'a request with other credentials than the previous request on its connection, or without credentials, does not wait for a share of the processor: %o',
  (headers) => {
    const { callers, request } = usedUp()
    let isBegun = false
    callers.begin(request(headers), () => {
      isBegun = true
    })
    expect(isBegun).toBe(true)
  },
)

test('a request is not started if its client has disconnected', async () => {
  const { callers, socket, request } = usedUp()
  let isBegun = false
  callers.begin(request(), () => {
    isBegun = true
  })
  socket.destroyed = true
  await turn()
  expect(isBegun).toBe(false)
})

test('a request is started without waiting if its caller’s queue is full, so that the operation itself refuses the request', () => {
  const { callers, request, share } = usedUp()
  expect(() => {
    for (let at = 0; at < 10; at += 1) share.run('alice', () => undefined)
  }).toThrow('too many')
  let isBegun = false
  callers.begin(request(), () => {
    isBegun = true
  })
  expect(isBegun).toBe(true)
})
