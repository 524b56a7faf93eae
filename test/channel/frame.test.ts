import { describe, expect, test } from 'vitest'

import { type ChannelMessage, encodeFrame, FrameDecoder } from '../../src/channel/frame.ts'
import {
  encodeFlag,
  encodeInt32,
  encodeBitMask,
  encodeText,
  encodeUint64,
} from '../../src/channel/headers.ts'
import { retainableBytes } from '../../src/channel/header-view.ts'
import { seededRandom } from '../../src/lib/random.ts'

const limits = { frameHeadersBytesMax: 256, frameHeadersMax: 8, frameBodyBytesMax: 1024 }

/** Frames that were written byte by byte from the description of the protocol. */
const golden: readonly {
  readonly name: string
  readonly message: ChannelMessage
  readonly hex: string
}[] = [
  {
    name: 'an empty heartbeat with a stamp',
    message: {
      contentType: 5,
      sequence: 7,
      headers: new Map([[5, encodeUint64(0x01_02_03_04_05_06_07_08n)]]),
      body: new Uint8Array(),
    },
    hex: '0306090c 05000000 07000000 10000000 00000000' + '05000000 08000000 0807060504030201',
  },
  {
    name: 'a hello, outside of the sequence',
    message: {
      contentType: 0,
      sequence: -1,
      headers: new Map<number, Uint8Array>([
        [9, encodeFlag(true)],
        [7, encodeText('ctrl')],
      ]),
      body: encodeText('er1'),
    },
    hex:
      '0306090c 00000000 ffffffff 15000000 03000000' +
      '09000000 01000000 01' +
      '07000000 04000000 6374726c' +
      '657231',
  },
  {
    name: 'a result that answers a request',
    message: {
      contentType: 2,
      sequence: 258,
      headers: new Map<number, Uint8Array>([
        [1, encodeInt32(-1)],
        [2, encodeFlag(false)],
      ]),
      body: encodeText('no'),
    },
    hex:
      '0306090c 02000000 02010000 15000000 02000000' +
      '01000000 04000000 ffffffff' +
      '02000000 01000000 00' +
      '6e6f',
  },
]

/** Converts headers to a map, so that messages can be compared. */
const withMap = (message: ChannelMessage): ChannelMessage => ({
  ...message,
  headers: new Map(message.headers),
})

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

describe('frames', () => {
  test.each(golden)(
    'with the content “$name” are encoded as the recorded bytes',
    ({ message, hex }) => {
      expect(encodeFrame(message).toString('hex')).toBe(bytesOf(hex).toString('hex'))
      const { messages, fault } = new FrameDecoder(limits).push(bytesOf(hex))
      expect(fault).toBeNull()
      expect(messages.map(withMap)).toEqual([message])
    },
  )

  test('encode a capability mask in big-endian order, with as few bytes as possible', () => {
    expect(encodeBitMask([1, 2, 3, 4, 6])).toEqual(Uint8Array.of(0x5e))
    expect(encodeBitMask([0, 8])).toEqual(Uint8Array.of(0x01, 0x01))
    expect(encodeBitMask([62])).toEqual(Uint8Array.of(0x40, 0, 0, 0, 0, 0, 0, 0))
  })

  test('are decoded completely, however the stream is split', () => {
    const stream = Buffer.concat(golden.map(({ hex }) => bytesOf(hex)))
    for (const size of [1, 2, 3, 19, 20, 21, 64]) {
      const decoder = new FrameDecoder(limits)
      const found: ChannelMessage[] = []
      for (let at = 0; at < stream.length; at += size) {
        const { messages, fault } = decoder.push(stream.subarray(at, at + size))
        expect(fault).toBeNull()
        found.push(...messages.map(withMap))
      }
      expect(found).toEqual(golden.map(({ message }) => message))
    }
  })

  test('stay in the decoder until they are read, even if the limits change in the meantime', () => {
    const decoder = new FrameDecoder({ ...limits, frameBodyBytesMax: 0 })
    const stream = Buffer.concat(golden.map(({ hex }) => bytesOf(hex)))
    decoder.append(stream)
    expect(decoder.nextType()).toBe(5)
    expect(decoder.take()).toMatchObject({ contentType: 5, sequence: 7 })
    expect(decoder.takenBytes).toBe(36)
    decoder.limits = limits
    expect(decoder.push(new Uint8Array())).toMatchObject({ messages: [{}, {}], fault: null })
  })

  test.each([
    ['another magic', '0306090b 00000000 00000000 00000000 00000000', 'unknown magic'],
    ['headers beyond the limit', '0306090c 00000000 00000000 01010000 00000000', '257 bytes'],
    ['headers of negative size', '0306090c 00000000 00000000 ffffffff 00000000', '-1 bytes'],
    ['a body beyond the limit', '0306090c 00000000 00000000 00000000 01040000', '1025 bytes'],
    ['a body of 2 GiB', '0306090c 00000000 00000000 00000000 ffffff7f', '2147483647 bytes'],
    ['a truncated header', '0306090c 00000000 00000000 04000000 00000000 05000000', 'ends early'],
    [
      'a header that is longer than all headers together',
      '0306090c 00000000 00000000 08000000 00000000 05000000 01000000',
      'a header of 1 bytes',
    ],
  ])('with %s cause a permanent protocol error', (_name, hex, fault) => {
    const decoder = new FrameDecoder(limits)
    expect(decoder.push(bytesOf(hex)).fault).toContain(fault)
    const [first] = golden
    expect(decoder.push(bytesOf(first?.hex ?? ''))).toMatchObject({ messages: [] })
    expect(decoder.roomBytes).toBeLessThan(8192)
  })

  test('with too many headers cause a protocol error', () => {
    const headers = new Map(Array.from({ length: 9 }, (_, key) => [key, new Uint8Array()] as const))
    const frame = encodeFrame({ contentType: 1, sequence: 1, headers, body: new Uint8Array() })
    expect(new FrameDecoder(limits).push(frame).fault).toBe('too many headers')
  })
})

/** Headers according to the protocol: the last value of a key counts. */
function headersOf(block: Uint8Array): Map<number, Uint8Array> {
  const view = new DataView(block.buffer, block.byteOffset, block.length)
  const headers = new Map<number, Uint8Array>()
  for (let at = 0; at < block.length;) {
    const end = at + 8 + view.getInt32(at + 4, true)
    headers.set(view.getInt32(at, true), Uint8Array.from(block.subarray(at + 8, end)))
    at = end
  }
  return headers
}

function frameWith(block: Uint8Array, body: Uint8Array, sequence = 1): Buffer {
  const frame = encodeFrame({ contentType: 9, sequence, headers: new Map(), body })
  frame.writeInt32LE(block.length, 12)
  return Buffer.concat([frame.subarray(0, 20), block, body])
}

const entry = (key: number, text: string): Buffer =>
  encodeFrame({
    contentType: 1,
    sequence: 1,
    headers: new Map([[key, encodeText(text)]]),
    body: new Uint8Array(),
  }).subarray(20)

describe('decoded messages of a channel', () => {
  test('are views of the received chunk', () => {
    const [frame] = golden.map(({ hex }) => bytesOf(hex))
    const chunk = Buffer.concat([frame ?? '', frame ?? ''].map((each) => Buffer.from(each)))
    const decoder = new FrameDecoder(limits)
    decoder.append(chunk)
    const first = decoder.take()
    expect(first?.headers.get(5)?.buffer).toBe(chunk.buffer)
    expect(decoder.take()?.body.buffer).toBe(chunk.buffer)
    expect(decoder.roomBytes).toBe(0)
    decoder.append(chunk.subarray(0, 30))
    expect(decoder.take()).toBeNull()
    decoder.append(chunk.subarray(30))
    expect(decoder.take()?.headers.get(5)).toEqual(first?.headers.get(5))
    expect(decoder.take()?.headers.get(5)?.buffer).toBe(chunk.buffer)
  })

  test('never change when later data arrives, however this data is split', () => {
    const random = seededRandom(20_261_124)
    for (let round = 0; round < 200; round += 1) {
      const decoder = new FrameDecoder({ ...limits, keptBodyBytesMax: () => 600 })
      const sent = Array.from({ length: 30 }, (_, sequence) => {
        const bytes = random.integer(0, 3) === 0 ? random.integer(0, 1000) : random.integer(0, 60)
        const body = new Uint8Array(bytes).fill(sequence + 1)
        return {
          sequence,
          body: bytes > 600 ? new Uint8Array() : body,
          frame: frameWith(entry(sequence, `value ${sequence}`), body, sequence),
        }
      })
      const stream = Buffer.concat(sent.map(({ frame }) => frame))
      const got: ChannelMessage[] = []
      for (let at = 0; at < stream.length;) {
        const size = random.integer(1, 400)
        // Each chunk in a separate buffer, as a socket delivers it.
        decoder.append(Uint8Array.from(stream.subarray(at, at + size)))
        at += size
        for (let left = random.integer(0, 9); left > 0; left -= 1) {
          const message = decoder.take()
          if (message === null) break
          got.push(message)
        }
      }
      got.push(...decoder.push(new Uint8Array()).messages)
      expect(decoder.roomBytes).toBe(0)
      expect(got.map(({ sequence, body }) => ({ sequence, body }))).toEqual(
        sent.map(({ sequence, body }) => ({ sequence, body })),
      )
      for (const { sequence, headers } of got) {
        expect(headers.get(sequence)).toEqual(encodeText(`value ${sequence}`))
      }
    }
  })

  test('provide their headers exactly as a Map of all headers does', () => {
    const random = seededRandom(7)
    for (let round = 0; round < 500; round += 1) {
      const block = Buffer.concat(
        Array.from({ length: random.integer(0, 8) }, (_, at) =>
          entry(random.integer(-2, 4), 'x'.repeat(at)),
        ),
      )
      const expected = headersOf(block)
      const [message] = new FrameDecoder(limits).push(frameWith(block, new Uint8Array())).messages
      const headers = message?.headers ?? new Map<number, Uint8Array>()
      for (let key = -3; key <= 5; key += 1) {
        expect(headers.get(key)).toEqual(expected.get(key))
        expect(headers.has(key)).toBe(expected.has(key))
      }
      expect(headers.size).toBe(expected.size)
      expect([...headers]).toEqual([...expected])
      const again = encodeFrame({ contentType: 9, sequence: 1, headers, body: new Uint8Array() })
      expect(headersOf(again.subarray(20))).toEqual(expected)
    }
  })

  test('may contain a header key twice, which counts as one header', () => {
    const twice = Buffer.concat([entry(1, 'a'), entry(2, 'b'), entry(1, 'c')])
    const [message] = new FrameDecoder(limits).push(frameWith(twice, new Uint8Array())).messages
    expect(message?.headers.get(1)).toEqual(encodeText('c'))
    expect(message?.headers.size).toBe(2)
    const seven = Array.from({ length: 7 }, (_, key) => entry(key, 'a'))
    const many = Buffer.concat([...seven, ...seven, ...seven])
    expect(new FrameDecoder(limits).push(frameWith(many, new Uint8Array()))).toMatchObject({
      messages: [{}],
      fault: null,
    })
    const more = Buffer.concat([...seven, ...seven, entry(7, 'a'), entry(8, 'a')])
    const { fault } = new FrameDecoder(limits).push(frameWith(more, new Uint8Array()))
    expect(fault).toBe('too many headers')
  })

  test('are copied before they are stored if they are a small part of a chunk', () => {
    const chunk = new Uint8Array(1000)
    expect(retainableBytes(chunk.subarray(0, 600)).buffer).toBe(chunk.buffer)
    const kept = retainableBytes(Buffer.from(chunk.buffer).subarray(0, 100))
    expect(kept).toHaveLength(100)
    expect(kept.buffer.byteLength).toBe(100)
  })
})

test('the frame decoder never throws on random or mutated bytes, and uses little more memory than two frames', () => {
  const random = seededRandom(20_261_122)
  const stream = Buffer.concat(golden.map(({ hex }) => bytesOf(hex)))
  const roomMax = 2 * (20 + limits.frameHeadersBytesMax + limits.frameBodyBytesMax) + 4096
  for (let round = 0; round < 4000; round += 1) {
    const decoder = new FrameDecoder(limits)
    const bytes = round % 2 === 0 ? Buffer.from(stream) : Buffer.alloc(200)
    const changes = round % 2 === 0 ? random.integer(0, 3) : bytes.length
    for (let change = 0; change < changes; change += 1) {
      bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255)
    }
    if (round % 4 === 1) bytes.set(stream.subarray(0, random.integer(4, 19)))
    for (let at = 0; at < bytes.length;) {
      const size = random.integer(1, 60)
      decoder.push(bytes.subarray(at, at + size))
      at += size
    }
    expect(decoder.roomBytes).toBeLessThanOrEqual(roomMax)
  }
})

test('a frame of which only the header arrives uses only the memory of the received bytes', () => {
  const decoder = new FrameDecoder({ ...limits, frameBodyBytesMax: 64 * 1024 * 1024 })
  decoder.push(bytesOf('0306090c 00000000 00000000 00000000 00000004'))
  for (let at = 0; at < 100; at += 1) decoder.push(new Uint8Array(100))
  expect(decoder.roomBytes).toBeLessThan(64 * 1024)
})
