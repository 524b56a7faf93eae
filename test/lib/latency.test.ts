import { expect, test } from 'vitest'

import { LATENCY_BOUNDS_MS, LatencyHistogram } from '../../src/lib/runtime/latency-histogram.ts'
import { EventLoopDelay } from '../../src/lib/runtime/event-loop-delay.ts'
import { eventually } from '../support/eventually.ts'

test('the percentile of a latency histogram covers the last ten seconds, and its counts cover the time since the start', () => {
  const histogram = new LatencyHistogram()
  for (let n = 0; n < 98; n += 1) histogram.record(0.9, 1000)
  for (let n = 0; n < 2; n += 1) histogram.record(400, 1000)
  const { count, sumMs, buckets, p99Ms } = histogram.counts(1000)
  expect(count).toBe(100)
  expect(sumMs).toBeCloseTo(98 * 0.9 + 800)
  expect(buckets[LATENCY_BOUNDS_MS.indexOf(1)]).toBe(98)
  expect(buckets.at(-1)).toBe(100)
  expect(p99Ms).toBeGreaterThan(250)
  expect(p99Ms).toBeLessThanOrEqual(400)
  expect(histogram.counts(9999).p99Ms).toBe(p99Ms)
  expect(histogram.counts(10_000).p99Ms).toBe(0)
  histogram.record(0.2, 13_000)
  expect(histogram.counts(13_000).p99Ms).toBeLessThanOrEqual(0.2)
  expect(histogram.counts(13_000).count).toBe(101)
})

test('a latency above the last bucket of the histogram is recorded with its full duration', () => {
  const histogram = new LatencyHistogram()
  histogram.record(42_000, 0)
  expect(histogram.counts(0)).toMatchObject({ count: 1, p99Ms: 42_000 })
  expect(histogram.counts(0).buckets.at(-1)).toBe(0)
})

test('a blocked event loop increases the measured timer delay', async () => {
  const delay = new EventLoopDelay()
  try {
    // Waits for a first sample, because the delay is measured from the last sample.
    await new Promise((resolve) => setTimeout(resolve, 300))
    const endMs = performance.now() + 500
    while (performance.now() < endMs);
    await eventually(() => expect(delay.p99Ms).toBeGreaterThanOrEqual(200))
  } finally {
    delay.stop()
  }
})
