import { expect, test } from 'vitest'
import {
  packedTextAt,
  packedTextBytes,
  readPackedText,
  writePackedText,
} from '../../src/fsm/records/packed-text.ts'
import { seededRandom } from '../../src/lib/random.ts'

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_'

function roundTrip(text: string): number {
  const bytes = Buffer.alloc(packedTextBytes(text) + 2, 0xa5)
  const end = writePackedText(bytes, 1, text)
  const place = packedTextAt(bytes, 1)
  expect([readPackedText(bytes, place), place.end]).toEqual([text, end])
  // Nothing before it or behind it is touched.
  expect([bytes[0], bytes[end], end]).toEqual([0xa5, 0xa5, bytes.length - 1])
  expect(place.length).toBe(Buffer.byteLength(text))
  return end - 1
}

test('an id of twelve letters takes ten bytes', () => {
  expect(roundTrip('hVx5K7cQmY2a')).toBe(10)
})

test.each(['', '-', '_z9A', letters, 'a.b', 'björn', '{"ok":false}', '\u0000', '😀', ' a'])(
  'the text %j comes back as it was',
  (text) => {
    roundTrip(text)
  },
)

test('texts of any letters and lengths come back as they were', () => {
  const random = seededRandom(11)
  for (let length = 0; length < 300; length += 1) {
    const text = Array.from({ length }, () => letters[random.integer(0, 63)]).join('')
    roundTrip(text)
    roundTrip(`${text}.`)
  }
  roundTrip('x'.repeat(100_000))
  roundTrip('é'.repeat(50_000))
})
