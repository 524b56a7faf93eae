import { expect, test } from 'vitest'
import { parseDuration } from '../../src/lib/text/duration.ts'

test.each([
  ['10m', 600_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1500],
  ['.5s', 500],
  ['2.s', 2000],
  ['250ms', 250],
  ['1500us', 1.5],
  ['1µs', 0.001],
  ['0', 0],
  ['-1m', -60_000],
  ['+1m', 60_000],
])('the duration %s is parsed as %d ms', (text, ms) => {
  expect(parseDuration(text)).toBeCloseTo(ms, 6)
})

test.each(['', '10', 'm', '1 m', '1d', '1h30', '--1m', '1e3s', '.s', '1m'.repeat(9)])(
  '%j is not a valid duration',
  (text) => {
    expect(parseDuration(text)).toBeNull()
  },
)
