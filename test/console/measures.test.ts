import { expect, test } from 'vitest'

import { lastSeenTime } from '../../src/console/pages/records/last-seen.ts'
import { texts } from '../../src/console/texts.ts'

// Goal: numbers and times are readable at a glance, and do not contradict each other.

test('a latency of one second and more is in seconds', () => {
  expect([0.42, 30.6, 999, 1500, 12_000].map(texts.live.milliseconds)).toEqual([
    '0.4 ms',
    '31 ms',
    '999 ms',
    '1.5 s',
    '12 s',
  ])
  expect(texts.live.milliseconds(65_000)).toBe('not measured')
})

test('the latencies of both directions of a link have the same number of decimal places', () => {
  expect(texts.live.latencies(382.6, 30)).toBe('383 / 30 ms')
  expect(texts.live.latencies(0.42, 30)).toBe('0.4 / 30.0 ms')
  expect(texts.live.latencies(65_000, 3)).toBe('– / 3.0 ms')
  expect(texts.live.latencies(65_000, 65_000)).toBe('not measured')
})

test('a duration is shown in the largest unit in which it is a whole number', () => {
  expect([600, 5400, 90].map(texts.duration)).toEqual(['10 minutes', '90 minutes', '90 seconds'])
})

test('the last-seen time, which is rounded down to the minute, is never shown as earlier than the creation of the identity', () => {
  const createdAt = '2026-11-30T10:00:20.000Z'
  const lastSeenAt = '2026-11-30T10:00:00.000Z'
  expect(lastSeenTime({ createdAt, lastSeenAt })).toBe(createdAt)
  expect(lastSeenTime({ createdAt: lastSeenAt, lastSeenAt: createdAt })).toBe(createdAt)
  expect(lastSeenTime({ createdAt, lastSeenAt: null })).toBeNull()
})
