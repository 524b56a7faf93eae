import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'

import type { PayloadContent } from '../../../src/channel/messages/payload.ts'
import type { CircuitEndpoint } from '../../../src/overlay/circuits/circuit-endpoint.ts'
import { socketLimits } from '../../../src/overlay/sockets/limits.ts'
import { SocketApplication } from '../../../src/overlay/sockets/socket-application.ts'
import { eventually } from '../support.ts'

// Goal: a circuit carries everything that its socket received, and then the end of the stream.
// Method: real TCP sockets; the test plays the circuit endpoint, and decides when it has room.

const cleanups: (() => void)[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

/** A circuit endpoint that accepts one piece at a time while it is full. */
class Endpoint implements CircuitEndpoint {
  readonly circuitId = 'c1'
  isClosed = false
  isFull = false
  /** Calls of the application in their order; a piece is shown as its text. */
  readonly calls: string[] = []

  send({ body, edgeFlags }: PayloadContent): boolean {
    this.calls.push(edgeFlags === 0 ? Buffer.from(body).toString() : 'FIN')
    return !this.isFull
  }

  finish(): void {
    this.calls.push('finish')
  }

  abort(): void {
    this.calls.push('abort')
  }

  resume(): void {}

  close(reason: string): void {
    this.calls.push(`close: ${reason}`)
  }
}

async function connected(): Promise<{ readonly inner: Socket; readonly outer: Socket }> {
  const server = createServer({ allowHalfOpen: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const { port } = server.address() as AddressInfo
  const outer = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [inner] = await accepted
  cleanups.push(() => {
    outer.destroy()
    inner.destroy()
    server.close()
  })
  return { inner, outer }
}

/** An application whose socket closed while the circuit was full, after the first of two pieces. */
async function closedWithRest() {
  const { inner, outer } = await connected()
  const endpoint = new Endpoint()
  const application = new SocketApplication(inner)
  application.start(endpoint)
  endpoint.isFull = true
  application.onFinished()
  const [first, second] = ['a'.repeat(32 * 1024), 'b'.repeat(1000)]
  outer.end(first + second)
  outer.resume()
  await eventually(() => inner.destroyed).toBe(true)
  return { application, endpoint, first, second }
}

describe('An application of a socket', () => {
  test('sends the remaining data of a socket that closed while the circuit was full, and only then closes its circuit endpoint', async () => {
    const { application, endpoint, first, second } = await closedWithRest()
    expect(endpoint.calls).toEqual([first])
    endpoint.isFull = false
    application.onWritable()
    expect(endpoint.calls).toEqual([first, second, 'FIN', 'finish', 'close: the socket is closed'])
  })

  test('ends the circuit if it accepts none of the remaining data of a closed socket for ten minutes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { endpoint, first } = await closedWithRest()
    // Vitest's polling has advanced the time a little.
    vi.advanceTimersByTime(socketLimits.flushMsMax - 60_000)
    expect(endpoint.calls).toEqual([first])
    vi.advanceTimersByTime(60_000)
    expect(endpoint.calls).toEqual([first, 'abort'])
  })

  test('resets the socket if the peer does not read the rest of the data after the circuit has ended', async () => {
    const { inner, outer } = await connected()
    const application = new SocketApplication(inner)
    application.start(new Endpoint())
    while (application.deliver({ body: Buffer.alloc(100_000), edgeFlags: 0, traceId: null }));
    application.onFinished()
    application.onClosed('both ends have finished', true)
    const errors: string[] = []
    outer.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? ''))
    // Node.js emits this event when the socket has been idle for `flushMsMax`.
    inner.emit('timeout')
    outer.resume()
    await eventually(() => outer.destroyed).toBe(true)
    expect([errors, outer.readableEnded]).toEqual([['ECONNRESET'], false])
  })

  test('ends the stream of the circuit if the peer of the socket ended its side before the circuit existed', async () => {
    const { inner, outer } = await connected()
    outer.end()
    await eventually(() => inner.readableEnded).toBe(true)
    const endpoint = new Endpoint()
    new SocketApplication(inner).start(endpoint)
    expect(endpoint.calls).toEqual(['FIN', 'finish'])
  })
})
