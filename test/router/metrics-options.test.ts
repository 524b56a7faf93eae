import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { MetricsBatch } from '../../src/channel/messages/reports.ts'
import { MetricsReporter } from '../../src/router/reports/metrics-reporter.ts'
import { scheduleByIntervals, scheduleBySharedTimer } from '../support/fake-schedule.ts'
import { configured } from './dial/support.ts'

// Goal: the router creates, keeps and sends metrics reports according to the options of `metrics`.
// Method: the test controls the clock.

let nowMs = 0
let isConnected = true
let made = 0
const sent: { readonly count: number; readonly atMs: number }[] = []
let reporter: MetricsReporter

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  scheduleByIntervals()
  nowMs = 0
  isConnected = true
  made = 0
  sent.length = 0
})
afterEach(() => {
  reporter.stop()
  scheduleBySharedTimer()
  vi.useRealTimers()
})

function start(options: string): void {
  reporter = new MetricsReporter({
    config: configured(`metrics: {${options}}`).metrics,
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    figures: () => ({ integers: { count: (made += 1) }, numbers: {}, latenciesNs: {} }),
    send: ({ integers }: MetricsBatch) => {
      if (isConnected) sent.push({ count: Number(integers['count']), atMs: nowMs })
      return isConnected
    },
  })
  reporter.start()
}

async function pass(seconds: number): Promise<void> {
  for (let k = 0; k < seconds; k += 1) {
    nowMs += 1000
    await vi.advanceTimersByTimeAsync(1000)
  }
}

test('a router creates a metrics report every reportInterval', async () => {
  start('reportInterval: 10s, intervalAgeThreshold: 0s')
  await pass(35)
  expect(sent.map(({ atMs }) => atMs)).toEqual([10_000, 20_000, 30_000])
})

test('a router sends a metrics report once intervalAgeThreshold has passed since the report’s interval began', async () => {
  start('reportInterval: 10s, intervalAgeThreshold: 25s')
  await pass(36)
  expect(sent).toEqual([
    { count: 1, atMs: 25_000 },
    { count: 2, atMs: 35_000 },
  ])
})

test('a router keeps the newest messageQueueSize metrics reports while no controller is connected', async () => {
  start('reportInterval: 10s, intervalAgeThreshold: 0s, messageQueueSize: 2')
  isConnected = false
  await pass(50)
  isConnected = true
  reporter.flush()
  expect(sent.map(({ count }) => count)).toEqual([4, 5])
})
