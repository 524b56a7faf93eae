import { describe, expect, test } from 'vitest'

import { xgressOptions } from '../../src/overlay/circuits/xgress-options.ts'
import { LoneEnd } from '../router/forward/lone-end.ts'
import { pieceOf } from '../router/forward/xgress-pair.ts'

// The attack: the other endpoint of a circuit chooses any payload numbers, announces data that
// never arrives, and acknowledges data that was never sent, so that this router stores more and
// more for it, or other circuits stop. Each circuit has limits.

const KIB = 1024
const rxBufferSize = 256 * KIB
const options = xgressOptions({ rxBufferSize })

function attacked(): LoneEnd {
  const end = new LoneEnd(true, { options })
  end.payload(0, { flags: 4 })
  end.sent()
  return end
}

/** Expects that the circuit still delivers the data of an honest endpoint. */
function expectAlive(end: LoneEnd): void {
  end.payload(1, { body: Buffer.from('honest') })
  expect(end.application.delivered.map(({ body }) => Buffer.from(body).toString())).toContain(
    'honest',
  )
  expect(end.closed).toEqual([])
}

describe('a circuit endpoint that sends false values', () => {
  test('cannot fill the receive buffer with payloads far ahead of the next expected one', () => {
    const end = attacked()
    for (let at = 2; at < 200_000; at += 1) end.payload(at, { body: Buffer.from('x') })
    expect(end.xgress.bufferedBytes).toBeLessThanOrEqual(16_384)
    for (const ahead of [2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1, 2n ** 63n]) {
      end.payload(ahead, { body: new Uint8Array(10) })
    }
    expect(end.xgress.bufferedBytes).toBeLessThanOrEqual(16_384)
    expectAlive(end)
  })

  test('cannot make the receiver buffer more than twice its buffer size by leaving a gap in the sequence', () => {
    const end = attacked()
    end.payload(10_000, { body: Buffer.from('x') })
    for (let at = 2; at < 1000; at += 1) end.payload(at, { body: new Uint8Array(16 * KIB) })
    expect(end.xgress.bufferedBytes).toBeLessThanOrEqual(2 * rxBufferSize)
    expectAlive(end)
  })

  test('cannot overfill the receive buffer while the application does not read', () => {
    const end = attacked()
    end.application.takesMore = () => false
    for (let at = 1; at < 1000; at += 1) end.payload(at, { body: new Uint8Array(16 * KIB) })
    expect(end.xgress.bufferedBytes).toBeLessThanOrEqual(rxBufferSize + 16 * KIB)
  })

  test('cannot reuse a delivered sequence number by letting the number wrap', () => {
    const end = attacked()
    end.payload(2 ** 32 + 1, { body: Buffer.from('forged') })
    expect(end.application.delivered).toEqual([])
    expect(end.acknowledgements()).toEqual([])
    expectAlive(end)
  })

  test('cannot announce chunks that do not fit the buffer', () => {
    const end = attacked()
    // The payload announces 2^28 bytes, which then arrive one at a time.
    end.payload(1, { flags: 8, body: Buffer.from('80808080014141', 'hex') })
    for (let at = 2; at < 40; at += 1) end.payload(at, { flags: 8, body: new Uint8Array(16 * KIB) })
    expect(end.xgress.bufferedBytes).toBeLessThanOrEqual(rxBufferSize)
    expect(end.closed).toEqual([['the other end sent malformed chunks', true]])
  })

  test('cannot have payloads delivered back to the endpoint that sent them', () => {
    const end = attacked()
    end.receive(1100, { sequence: 1, flags: 2 }, Buffer.from('my own'))
    expect([end.application.delivered, end.sent()]).toEqual([[], []])
    expectAlive(end)
  })

  test('cannot make an endpoint accept an acknowledgment that the endpoint itself sent', () => {
    const end = attacked()
    end.xgress.send(pieceOf(10))
    const body = Uint8Array.of(0, 0, 0, 0)
    end.receive(1101, { flags: 2, buffered: 0 }, body)
    expect(end.xgress.inFlightBytes).toBe(10)
    end.receive(1101, { flags: 0, buffered: 0 }, body)
    expect(end.xgress.inFlightBytes).toBe(0)
  })

  test('cannot keep large buffers in memory by sending small payloads out of order', () => {
    const end = attacked()
    const pinned = new Set<ArrayBufferLike>()
    end.application.deliver = ({ body }) => {
      pinned.add(body.buffer)
      return true
    }
    const larges: ArrayBufferLike[] = []
    for (let at = 2; at < 100; at += 1) {
      const large = new Uint8Array(64 * KIB)
      larges.push(large.buffer)
      end.payload(at, { body: large.subarray(0, 10) })
    }
    end.payload(1)
    expect(pinned.size).toBeGreaterThan(90)
    for (const large of larges) expect(pinned.has(large)).toBe(false)
  })

  test('cannot delay retransmissions beyond the configured maximum', () => {
    const end = attacked()
    for (let round = 0; round < 10_000; round += 1) {
      end.nowMs += 1
      const stamp = (Math.floor(end.nowMs) + 5000) % 65_536
      end.acknowledge([7, 8, 9], { stamp: stamp === 0 ? 1 : stamp })
    }
    end.xgress.send(pieceOf(10))
    end.sent()
    end.pass(10_200)
    expect(end.payloads().length).toBeGreaterThan(0)
  })

  test('cannot acknowledge 20,000 sequence numbers in one message', () => {
    const end = attacked()
    end.xgress.send(pieceOf(10))
    const sequences = Array.from({ length: 20_000 }, (_, at) => at)
    end.acknowledge(sequences)
    expect(end.xgress.inFlightBytes).toBe(10)
    end.acknowledge([0])
    expect(end.xgress.inFlightBytes).toBe(0)
  })
})
