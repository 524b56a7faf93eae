import { expect, test } from 'vitest'

import { parseDurationWord, parseTimeWord } from '../../../src/cli/records/time-words.ts'

const DAY_S = 24 * 60 * 60

test.each([
  ['7d', 7 * DAY_S],
  ['+1w2d', 9 * DAY_S],
  ['1h30m', 5400],
])('the word %s means the time that is %i seconds from now', (word, seconds) => {
  const before = Math.ceil(Date.now() / 1000)
  const at = Date.parse(parseTimeWord('expiresAt', word)) / 1000
  const after = Math.ceil(Date.now() / 1000)
  expect(at).toBeGreaterThanOrEqual(before + seconds)
  expect(at).toBeLessThanOrEqual(after + seconds)
})

test('an absolute time is sent unchanged', () => {
  const word = '2030-01-31T18:00:00+01:00'
  expect(parseTimeWord('expiresAt', word)).toBe(word)
})

test.each(['', '7', 'd', '-7d', '7y', '1234567d', 'tomorrow', '2030-02-30T00:00:00Z'])(
  'the word %j is refused as a time',
  (word) => {
    expect(() => parseTimeWord('expiresAt', word)).toThrow(/^expiresAt: expected a time such as/)
    expect(() => parseDurationWord('--for', word)).toThrow(/^--for: expected a duration such as/)
  },
)
