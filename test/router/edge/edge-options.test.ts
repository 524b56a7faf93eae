import { afterEach, expect, test, vi } from 'vitest'

import { askWithoutReading } from '../peer-router.ts'
import { scheduleByIntervals, scheduleBySharedTimer } from '../../support/fake-schedule.ts'
import { EdgeBench, eventually, serviceToken } from './support.ts'

// Goal: each option of a client listener, and of `edge`, has its documented effect. Method: a
// listener with the option, and real clients.

const closing: (() => unknown)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const close of closing.splice(0).toReversed()) await close()
})

async function open(options: string): Promise<EdgeBench> {
  const bench = await EdgeBench.open({ options })
  closing.push(() => bench.close())
  return bench
}

test('a router reports the sessions in use every heartbeatIntervalSeconds', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  scheduleByIntervals()
  closing.push(scheduleBySharedTimer)
  const bench = await open('')
  await bench.admitted('ann')
  const told = () => bench.controller.ofType(20_203).length
  const before = told()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(told()).toBe(before + 1)
  await vi.advanceTimersByTimeAsync(50_000)
  expect(told()).toBe(before + 6)
})

test('getCircuitTimeout limits how long a controller may take to create a circuit', async () => {
  const bench = await open(', getCircuitTimeout: 1234ms')
  const client = await bench.admitted('ann')
  client.send(60_783, 7, serviceToken('s1'))
  await eventually(() => bench.controller.timeoutsMs).toEqual([
    { contentType: 20_218, timeoutMs: 1234 },
  ])
})

test('a client is disconnected if a message to it cannot be sent within writeTimeout', async () => {
  const bench = await open(', writeTimeout: 200ms')
  const client = await bench.admitted('ann')
  closing.push(askWithoutReading(client.channel))
  await eventually(() =>
    bench.logged('client disconnected').map(({ fields }) => fields['reason']),
  ).toEqual(['a message was not sent within 200 ms'])
})
