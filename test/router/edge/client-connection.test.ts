import { expect, test } from 'vitest'
import type { ControlConnection } from '../../../src/router/controllers/control-connection.ts'
import { ClientConnection } from '../../../src/router/edge/client-connection.ts'
import { TestEnd } from './circuits.ts'

// Goal: a connection that ends does not affect the other connections of its client.

const piece = (bytes: number) => ({ body: new Uint8Array(bytes), edgeFlags: 0, traceId: null })

test('data that a client sends for an ended circuit is discarded even while the client does not read', () => {
  const client = { queuedBytes: 0, isReading: false, onReads: (): void => undefined }
  const told: number[] = []
  let isOver = false
  const connection = new ClientConnection({
    id: 7,
    session: { id: 's1', token: 't1' },
    flow: {
      trySend: ({ contentType }) => {
        if (client.isReading) told.push(contentType)
        return client.isReading
      },
      onceWritable: (callback) => (client.onReads = callback),
      addQueued: (bytes) => (client.queuedBytes += bytes),
    },
    send: ({ contentType }) => told.push(contentType),
    onOver: () => (isOver = true),
  })
  const owner = { id: 'ctrl1' } as ControlConnection
  const circuit = { id: 'c1', address: 'a1', owner, isTerminator: true }
  const end = new TestEnd(circuit, connection)
  connection.start(() => end)
  end.takes = false
  connection.take(piece(10))
  connection.take(piece(1000))
  end.arrive('the last that the far end wrote')
  connection.onClosed('the far end was killed')
  expect(client.queuedBytes).toBe(0)
  connection.take(piece(2_000_000))
  expect(client.queuedBytes, 'at a megabyte, the router does not read from this client').toBe(0)
  expect(isOver).toBe(false)
  client.isReading = true
  client.onReads()
  expect(told).toEqual([60_786, 60_785])
  expect(isOver).toBe(true)
})
