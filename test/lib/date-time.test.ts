import { expect, test } from 'vitest'

import { dateTimeMs } from '../../src/lib/text/date-time.ts'

test.each([
  ['2030-01-02T03:04:05Z', Date.UTC(2030, 0, 2, 3, 4, 5)],
  ['2030-01-02t03:04:05.5z', Date.UTC(2030, 0, 2, 3, 4, 5, 500)],
  ['2030-01-02T03:04:05.1234567+01:30', Date.UTC(2030, 0, 2, 1, 34, 5, 123)],
  ['2028-02-29T00:00:00-23:59', Date.UTC(2028, 1, 29, 23, 59)],
  ['0001-01-01T00:00:00Z', Date.parse('0001-01-01T00:00:00Z')],
])('the RFC 3339 time %s is parsed as %d ms', (text, ms) => {
  expect(dateTimeMs(text)).toBe(ms)
})

test.each([
  '',
  'tomorrow',
  '2030-12-31T23:59:60Z',
  '2030-12-31T24:00:00Z',
  '2030-12-31T23:59:59+01',
  '2030-12-31T23:59:59+24:00',
  '2030-12-31T23:59:59',
  '2030-12-31 23:59:59Z',
  '2031-02-29T00:00:00Z',
  '2031-13-01T00:00:00Z',
  '2031-00-01T00:00:00Z',
  '0000-01-01T00:00:00+00:01',
  '9999-12-31T23:59:59-00:01',
  '+010000-01-01T00:00:00Z',
  '2030-01-02T03:04:05Z\n',
])('the string %j is not a valid time', (text) => {
  expect(dateTimeMs(text)).toBe(null)
})
