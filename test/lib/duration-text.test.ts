import { expect, test } from 'vitest'

import { durationText } from '../../src/lib/text/duration-text.ts'

test.each([
  [0, '0s'],
  [0.000_02, '20ns'],
  [0.83, '830µs'],
  [1, '1ms'],
  [12.25, '12.25ms'],
  [999.999_999, '999.999999ms'],
  [1500, '1.5s'],
])('%d ms are formatted as %s', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})
