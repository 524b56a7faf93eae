import { describe, expect, test } from 'vitest'

import { formatByteCount } from '../../src/client/format-byte-count.ts'
import { axisMaximum } from '../../src/console/pages/traffic/axis.ts'

describe('A formatted amount of bytes', () => {
  test('has at most three digits and a decimal unit', () => {
    const amounts = [0, 1, 999, 1000, 1234, 12_345, 123_456, 999_999, 1.5e6, 2 ** 53, 1e27]
    expect(amounts.map(formatByteCount)).toEqual([
      '0 B',
      '1 B',
      '999 B',
      '1 kB',
      '1.23 kB',
      '12.3 kB',
      '123 kB',
      '1 MB',
      '1.5 MB',
      '9.01 PB',
      '1,000,000 ZB',
    ])
  })
})

describe('The top of a chart’s axis', () => {
  test('is a round number that is not below the highest value', () => {
    expect([0, 0.4, 1, 1.1, 3, 5, 7, 10, 11, 49_999, 50_001].map(axisMaximum)).toEqual([
      1, 1, 1, 2, 3, 5, 7, 10, 12, 50_000, 60_000,
    ])
  })
})
