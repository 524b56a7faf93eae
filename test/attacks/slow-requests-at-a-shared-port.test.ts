import { test } from 'vitest'

import { SharedPort } from '../controller/shared-port.ts'
import { eventually } from '../router/support.ts'

// The attack: at the port that a controller shares between routers and HTTP clients, a client sends
// requests that do not end, and thus keeps connections open forever.

test('A connection with an incomplete request at a shared port is closed at the request timeout', async () => {
  const limits = { headersTimeoutMs: 300, requestTimeoutMs: 300, timeoutCheckMs: 100 }
  const shared = await SharedPort.open(limits)
  try {
    const slow = await shared.handshake({ ALPNProtocols: ['http/1.1'] })
    slow.resume()
    slow.write('GET /edge/client/v1/version HTTP/1.1\r\nHost: ')
    await eventually(() => slow.destroyed).toBe(true)
  } finally {
    await shared.close()
  }
})
