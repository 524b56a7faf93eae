import { describe, expect, test } from 'vitest'

import { type ChannelMessage, encodeFrame, FrameDecoder } from '../../src/channel/frame.ts'
import {
  flagValue,
  int32Value,
  maskValue,
  textValue,
  uint64Value,
} from '../../src/channel/headers.ts'
import { seededRandom } from '../../src/lib/random.ts'

const limits = { frameHeadersBytesMax: 256, frameHeadersMax: 8, frameBodyBytesMax: 1024 }

/** Written from the description of the protocol, byte by byte. */
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
      headers: new Map([[5, uint64Value(0x01_02_03_04_05_06_07_08n)]]),
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
        [9, flagValue(true)],
        [7, textValue('ctrl')],
      ]),
      body: textValue('er1'),
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
        [1, int32Value(-1)],
        [2, flagValue(false)],
      ]),
      body: textValue('no'),
    },
    hex:
      '0306090c 02000000 02010000 15000000 02000000' +
      '01000000 04000000 ffffffff' +
      '02000000 01000000 00' +
      '6e6f',
  },
]

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

describe('frames', () => {
  test.each(golden)('$name has these bytes', ({ message, hex }) => {
    expect(encodeFrame(message).toString('hex')).toBe(bytesOf(hex).toString('hex'))
    const { messages, fault } = new FrameDecoder(limits).push(bytesOf(hex))
    expect(fault).toBeNull()
    expect(messages).toEqual([message])
  })

  test('a capability mask is big-endian, of the fewest bytes', () => {
    expect(maskValue([1, 2, 3, 4, 6])).toEqual(Uint8Array.of(0x5e))
    expect(maskValue([0, 8])).toEqual(Uint8Array.of(0x01, 0x01))
    expect(maskValue([62])).toEqual(Uint8Array.of(0x40, 0, 0, 0, 0, 0, 0, 0))
  })

  test('come out whole, however the stream is cut', () => {
    const stream = Buffer.concat(golden.map(({ hex }) => bytesOf(hex)))
    for (const size of [1, 2, 3, 19, 20, 21, 64]) {
      const decoder = new FrameDecoder(limits)
      const found: ChannelMessage[] = []
      for (let at = 0; at < stream.length; at += size) {
        const { messages, fault } = decoder.push(stream.subarray(at, at + size))
        expect(fault).toBeNull()
        found.push(...messages)
      }
      expect(found).toEqual(golden.map(({ message }) => message))
    }
  })

  test('that are not taken wait, also for tighter or wider limits', () => {
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
    ['half a header', '0306090c 00000000 00000000 04000000 00000000 05000000', 'ends early'],
    [
      'a header longer than all headers',
      '0306090c 00000000 00000000 08000000 00000000 05000000 01000000',
      'a header of 1 bytes',
    ],
  ])('%s is a fault, for good', (_name, hex, fault) => {
    const decoder = new FrameDecoder(limits)
    expect(decoder.push(bytesOf(hex)).fault).toContain(fault)
    const [first] = golden
    expect(decoder.push(bytesOf(first?.hex ?? ''))).toMatchObject({ messages: [] })
    expect(decoder.roomBytes).toBeLessThan(8192)
  })

  test('with too many headers are a fault', () => {
    const headers = new Map(Array.from({ length: 9 }, (_, key) => [key, new Uint8Array()] as const))
    const frame = encodeFrame({ contentType: 1, sequence: 1, headers, body: new Uint8Array() })
    expect(new FrameDecoder(limits).push(frame).fault).toBe('too many headers')
  })
})

test('random and mutated bytes never throw, and take no more room than one frame', () => {
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

test('a frame that is announced and never comes takes the room of what has come', () => {
  const decoder = new FrameDecoder({ ...limits, frameBodyBytesMax: 64 * 1024 * 1024 })
  decoder.push(bytesOf('0306090c 00000000 00000000 00000000 00000004'))
  for (let at = 0; at < 100; at += 1) decoder.push(new Uint8Array(100))
  expect(decoder.roomBytes).toBeLessThan(64 * 1024)
})
