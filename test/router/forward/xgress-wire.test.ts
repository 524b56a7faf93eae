import { describe, expect, test } from 'vitest'

import { encodeFrame, FrameDecoder } from '../../../src/channel/frame.ts'
import { xgressOptions } from '../../../src/overlay/circuits/xgress-options.ts'
import { LoneEnd, type Seen, type Told } from './lone-end.ts'
import { arrivedFrom, pieceOf } from './xgress-pair.ts'

// Goal: one end communicates with an OpenZiti end, byte by byte. Method: the test builds and reads
// messages without the code under test, according to the known messages of such an end.

const capabilities = Uint8Array.of(0, 0, 1, 0)

function textOf({ body }: { readonly body: Uint8Array }): string {
  return Buffer.from(body).toString()
}

function header({ headers }: Seen, key: number): string | null {
  const value = headers.get(key)
  return value === undefined ? null : Buffer.from(value).toString('hex')
}

function startedTerminator(more: ConstructorParameters<typeof LoneEnd>[1] = {}): LoneEnd {
  const end = new LoneEnd(true, more)
  end.payload(0, { flags: 4, headers: new Map([[2001, capabilities]]) })
  end.acknowledge([0])
  end.sent()
  return end
}

describe('The frames of OpenZiti’s circuit endpoint', () => {
  const limits = {
    frameHeadersBytesMax: 2 ** 16,
    frameHeadersMax: 128,
    frameBodyBytesMax: 2 ** 24,
  }
  const entry = (key: string, hex: string): string => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(hex.length / 2)
    return key + length.toString('hex') + hex
  }
  const circuitId = entry('d0080000', Buffer.from('circuit1').toString('hex'))
  const frame = (type: string, headers: string, body: string): Buffer => {
    const lengths = Buffer.alloc(8)
    lengths.writeUInt32LE(headers.length / 2, 0)
    lengths.writeUInt32LE(body.length / 2, 4)
    const fixed = `0306090c${type}05000000${lengths.toString('hex')}`
    return Buffer.from(fixed + headers + body, 'hex')
  }

  test('start a circuit, carry data with flags, and end the circuit', () => {
    const end = new LoneEnd(true)
    const decoder = new FrameDecoder(limits)
    const arrive = (bytes: Uint8Array): void => {
      for (const message of decoder.push(bytes).messages) end.xgress.receive(message)
    }
    const [sequence, flags, stamp] = ['d1080000', 'd2080000', 'd4080000']
    arrive(
      frame(
        '4c040000',
        circuitId +
          entry(flags, '04000000') +
          entry(sequence, '0000000000000000') +
          entry(stamp, '3412') +
          entry('d1070000', '00000100'),
        '',
      ),
    )
    const [first, second] = end.sent()
    expect([first?.type, first?.sequence, first?.flags]).toEqual([1101, null, 2])
    expect([first?.sequences, first?.buffered, first?.stamp]).toEqual([[0], 0, 0x1234])
    expect([second?.type, second?.sequence, second?.flags]).toEqual([1100, 0, 2])
    expect(second && header(second, 2001)).toBe('00000100')
    arrive(
      frame(
        '4c040000',
        circuitId +
          entry(sequence, '0100000000000000') +
          entry(stamp, 'ffff') +
          entry('e0070000', '01000000') +
          entry('d0070000', '00112233445566778899aabbccddeeff'),
        Buffer.from('hello').toString('hex'),
      ),
    )
    arrive(
      frame(
        '4c040000',
        circuitId +
          entry(flags, '20000000') +
          entry(sequence, '0200000000000000') +
          entry(stamp, '0000'),
        '',
      ),
    )
    const [piece] = end.application.delivered
    expect(end.application.delivered).toHaveLength(1)
    expect([textOf(piece ?? pieceOf(0)), piece?.edgeFlags]).toEqual(['hello', 1])
    expect(Buffer.from(piece?.traceId ?? []).toString('hex')).toBe(
      '00112233445566778899aabbccddeeff',
    )
    expect(end.application.isFinished).toBe(true)
    expect(end.acknowledgements().map((each) => [each.sequences, each.stamp])).toEqual([
      [[1], 0xffff],
      [[2], 0],
    ])
  })

  test('are byte for byte equal to those that Flotilla’s circuit endpoint sends', () => {
    const frames: string[] = []
    const end = new LoneEnd(true, {
      transmit: (message) => {
        const bytes = encodeFrame({ ...arrivedFrom(message), sequence: 5 })
        frames.push(bytes.toString('hex'))
        return 'sent'
      },
    })
    end.nowMs = 0x5678
    end.payload(0, { flags: 4, stamp: 0x1234, headers: new Map([[2001, capabilities]]) })
    end.xgress.send({ body: Buffer.from('hi'), edgeFlags: 1, traceId: null })
    expect(frames).toEqual([
      frame(
        '4d040000',
        circuitId +
          entry('d2080000', '02000000') +
          entry('d3080000', '00000000') +
          entry('d4080000', '3412'),
        '00000000',
      ).toString('hex'),
      frame(
        '4c040000',
        circuitId +
          entry('d1080000', '0000000000000000') +
          entry('d2080000', '02000000') +
          entry('d4080000', '7856') +
          entry('d1070000', '00000100'),
        '',
      ).toString('hex'),
      frame(
        '4c040000',
        circuitId +
          entry('d1080000', '0100000000000000') +
          entry('d2080000', '02000000') +
          entry('d4080000', '7856') +
          entry('e0070000', '01000000'),
        Buffer.from('hi').toString('hex'),
      ).toString('hex'),
    ])
  })
})

describe('The start payload of a circuit', () => {
  test('has sequence 0, flag 4 and the capabilities, and is resent until the other endpoint acknowledges it', () => {
    const end = new LoneEnd(false)
    const [start] = end.payloads()
    expect([start?.sequence, start?.flags, start?.body.length]).toEqual([0, 4, 0])
    expect(start && header(start, 2001)).toBe('00000100')
    end.pass(300)
    const again = end.payloads()
    expect(again.map(({ sequence, flags }) => [sequence, flags])).toEqual([[0, 4 | 16]])
    end.acknowledge([0], { stamp: again[0]?.stamp ?? 0 })
    end.pass(10_000)
    expect(end.payloads()).toEqual([])
  })

  test('gets one response, even if it is repeated, and data may arrive before it', () => {
    const end = new LoneEnd(true)
    end.payload(1, { body: Buffer.from('early') })
    expect(end.sent().map(({ type }) => type)).toEqual([1101])
    for (let k = 0; k < 3; k += 1) {
      end.payload(0, { flags: 4, headers: new Map([[2001, capabilities]]) })
    }
    expect(end.payloads()).toHaveLength(1)
    expect(end.application.delivered.map(textOf)).toEqual(['early'])
  })

  test('gets no response if it contains no capabilities, and the endpoint that received it later sets flag 1 in its last payload', () => {
    const end = new LoneEnd(true)
    end.payload(0, { flags: 4 })
    expect(end.payloads()).toEqual([])
    end.xgress.finish()
    expect(end.payloads().map(({ sequence, flags }) => [sequence, flags])).toEqual([[0, 2 | 1]])
    end.pass(300)
    expect(end.payloads().map(({ sequence, flags }) => [sequence, flags])).toEqual([
      [0, 2 | 1 | 16],
    ])
  })
})

describe('Acknowledgments between circuit endpoints', () => {
  test('are sent for every payload, and again for a payload that arrives a second time', () => {
    const end = startedTerminator()
    end.payload(1, { body: Buffer.from('a'), stamp: 11 })
    end.payload(1, { body: Buffer.from('a'), stamp: 12, flags: 16 })
    end.payload(3, { body: Buffer.from('c'), stamp: 13 })
    end.payload(3, { body: Buffer.from('c'), stamp: 14, flags: 16 })
    expect(
      end.acknowledgements().map((each) => [each.sequences, each.buffered, each.stamp]),
    ).toEqual([
      [[1], 0, 11],
      [[1], 0, 12],
      [[3], 1, 13],
      [[3], 1, 14],
    ])
    expect(end.application.delivered.map(textOf)).toEqual(['a'])
  })

  test('that lack the number of buffered bytes block the sender until an acknowledgment contains this number', () => {
    const end = startedTerminator()
    end.xgress.send(pieceOf(10))
    end.xgress.send(pieceOf(11))
    end.receive(1101, { sequences: [] }, Buffer.from('00000001', 'hex'))
    end.sent()
    end.xgress.send(pieceOf(12))
    end.xgress.send(pieceOf(13))
    expect(end.payloads()).toEqual([])
    end.acknowledge([], { buffered: 0 })
    expect(end.payloads().map(({ body }) => body.length)).toEqual([12, 13])
  })

  test('may contain several sequence numbers', () => {
    const end = startedTerminator()
    for (let bytes = 1; bytes <= 4; bytes += 1) end.xgress.send(pieceOf(bytes))
    end.acknowledge([1, 2, 4])
    expect(end.xgress.inFlightBytes).toBe(3)
  })

  test('without sequence numbers are sent when the application has read half of the buffered bytes', () => {
    const end = startedTerminator()
    end.application.takesMore = () => false
    for (let sequence = 1; sequence <= 6; sequence += 1) {
      end.payload(sequence, { body: new Uint8Array(4000) })
    }
    expect(end.acknowledgements().map(({ buffered }) => buffered)).toEqual([
      0, 4000, 8000, 12_000, 16_000, 20_000,
    ])
    for (let k = 0; k < 2; k += 1) end.application.resume()
    expect(end.acknowledgements()).toEqual([])
    end.application.resume()
    const updates = end.acknowledgements()
    expect(updates.map((each) => [each.sequences, each.buffered])).toEqual([[[], 8000]])
  })
})

describe('Payloads that are not acknowledged', () => {
  test('are resent in order, with a new timestamp, after the scaled round trip time', () => {
    const end = startedTerminator()
    // The timestamp of the messages wraps at 65,536, which lies between these two times.
    end.nowMs = 65_500
    end.xgress.send(pieceOf(1))
    const [first] = end.payloads()
    expect(first?.stamp).toBe(65_500)
    end.nowMs = 65_636
    end.acknowledge([1], { stamp: 65_500 })
    end.xgress.send(pieceOf(2))
    end.xgress.send(pieceOf(3))
    end.sent()
    end.pass(200)
    expect(end.payloads()).toEqual([])
    end.pass(100)
    const again = end.payloads()
    expect(again.map(({ sequence, flags }) => [sequence, flags])).toEqual([
      [2, 2 | 16],
      [3, 2 | 16],
    ])
    expect(again.map(({ stamp }) => stamp)).toEqual([400, 400])
  })

  test('are resent after at most 10 s, even if the other endpoint claims a longer round trip time', () => {
    const end = startedTerminator()
    for (let k = 0; k < 100; k += 1) end.acknowledge([1_000_000], { stamp: (k * 7919) % 65_536 })
    end.xgress.send(pieceOf(1))
    end.sent()
    end.pass(10_200)
    expect(end.payloads().length).toBeGreaterThan(0)
  })

  test('reduce the send window to its minimum, and acknowledgments increase it again to its maximum', () => {
    const options = xgressOptions({ txPortalMaxSize: 100_000, txPortalStartSize: 100_000 })
    const end = startedTerminator({ options })
    for (let k = 0; k < 100; k += 1) end.xgress.send(pieceOf(1500))
    expect(end.payloads()).toHaveLength(67)
    end.pass(60_000)
    expect(end.xgress.windowBytes).toBe(16_384)
    for (let sequence = 1; sequence <= 101; sequence += 1) {
      end.acknowledge([sequence])
      expect(end.xgress.windowBytes).toBeLessThanOrEqual(100_000)
    }
    expect(end.xgress.windowBytes).toBe(100_000)
  })
})

describe('A circuit endpoint that finishes after the other one', () => {
  test('is kept for 5 s, so that the other application can read its buffer', () => {
    const end = startedTerminator()
    end.payload(1, { flags: 32 })
    end.pass(20_000)
    end.xgress.finish()
    end.acknowledge([1])
    end.sent()
    end.pass(4900)
    expect(end.closed).toEqual([])
    end.pass(200)
    expect(end.closed).toEqual([['both ends have finished', true]])
    const last = end.payloads().map(({ sequence, flags }) => [sequence, flags])
    expect(last).toEqual([[2, 2 | 1]])
  })
})

describe('Payload chunks (parts of one piece of data)', () => {
  const chunk = (hex: string): Told => ({ flags: 8, body: Buffer.from(hex, 'hex') })

  test('are joined in order, with the length and the headers in the first chunk', () => {
    const end = startedTerminator()
    const tag = Uint8Array.of(5, 0, 0, 0)
    end.payload(3, chunk('43'))
    end.payload(1, { ...chunk('0341'), headers: new Map([[2016, tag]]) })
    end.payload(2, chunk('42'))
    expect(end.application.delivered.map((piece) => [textOf(piece), piece.edgeFlags])).toEqual([
      ['ABC', 5],
    ])
  })

  test('are each delivered as one piece of data if they are complete or empty', () => {
    const end = startedTerminator()
    end.payload(1, chunk('024142'))
    end.payload(2, chunk(''))
    expect(end.application.delivered.map(textOf)).toEqual(['AB', ''])
  })

  test.each([
    ['more bytes than announced', ['0241', '424344']],
    ['an announcement without end', ['ffffffffffff']],
    ['more bytes than may be buffered', ['8080808010']],
  ])('end the circuit if a chunk has %s', (_, bodies) => {
    const end = startedTerminator()
    for (const [k, hex] of bodies.entries()) end.payload(k + 1, chunk(hex))
    expect(end.closed).toEqual([['the other end sent malformed chunks', true]])
    expect(end.application.delivered).toEqual([])
  })
})

describe('A route trace request that reaches a circuit endpoint', () => {
  const control = (body: string): Uint8Array => Buffer.from(`${body}circuit1`, 'latin1')
  const asked = new Map([
    [20, Uint8Array.of(3, 0, 0, 0)],
    [23, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)],
    [24, Uint8Array.of(9, 0, 0, 0)],
    [99, Uint8Array.of(1)],
  ])

  test('gets a response with the name of the circuit endpoint', () => {
    const end = new LoneEnd(false, { traced: { type: 'xgress/transport', id: 'er1' } })
    end.sent()
    end.receive(1102, { headers: asked }, control('\u0001'))
    const [answer] = end.sent()
    expect(answer?.type).toBe(1102)
    expect(Buffer.from(answer?.body ?? []).toString('latin1')).toBe('\u0002circuit1')
    const headers = [20, 21, 22, 23, 24, 99].map((key) => answer && header(answer, key))
    const hex = (text: string): string => Buffer.from(text).toString('hex')
    expect(headers).toEqual([
      '02000000',
      hex('xgress/transport'),
      hex('er1'),
      '0102030405060708',
      '09000000',
      null,
    ])
  })

  test('gets no response if it is malformed, or if its type is that of a response', () => {
    const end = new LoneEnd(false)
    end.sent()
    end.receive(1102, { headers: asked }, control('\u0002'))
    end.receive(1102, { headers: new Map([[20, Uint8Array.of(3)]]) }, control('\u0001'))
    end.receive(1102, { headers: asked }, Uint8Array.of(1))
    end.receive(1102, { headers: asked }, new Uint8Array(300).fill(1))
    end.receive(1102, { headers: new Map([[24, new Uint8Array(300)]]) }, control('\u0001'))
    expect(end.sent()).toEqual([])
  })
})
