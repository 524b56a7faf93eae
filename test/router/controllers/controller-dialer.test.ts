import { expect, onTestFinished, test } from 'vitest'

import { ControllerDialer } from '../../../src/router/controllers/controller-dialer.ts'
import { eventually } from '../support.ts'

// Goal: a controller that cannot be reached for days does not fill the log of a router.

test('a router logs a failure once for each address of a controller, and again if the reason changes', async () => {
  const warnings: unknown[] = []
  const attempts: string[] = []
  let reason = 'refused'
  let ms = 0
  const dialer = new ControllerDialer(
    {
      dial: (address) => {
        attempts.push(address)
        return Promise.reject(new Error(reason))
      },
      // Each look at the clock shows a second more, so that no attempt waits.
      clock: { nowMs: () => 0, monotonicMs: () => (ms += 1000) },
      random: { next: () => 0, integer: () => 0 },
      log: {
        info: () => undefined,
        warn: (fields) => warnings.push([fields['address'], fields['reason']]),
        error: () => undefined,
      },
      onConnected: () => null,
      onMessage: () => undefined,
      onClosed: () => undefined,
      isWanted: () => true,
    },
    { id: 'ctrl1', addresses: ['tls:one:1', 'tls:two:1'], waitMsMax: 1 },
  )
  onTestFinished(() => dialer.stop('the test has ended'))
  dialer.start()
  await eventually(() => attempts.length).toBeGreaterThanOrEqual(6)
  reason = 'timed out'
  const before = attempts.length
  await eventually(() => attempts.length).toBeGreaterThanOrEqual(before + 4)
  expect(warnings).toEqual([
    ['tls:one:1', 'refused'],
    ['tls:two:1', 'refused'],
    expect.arrayContaining(['timed out']),
    expect.arrayContaining(['timed out']),
  ])
})
