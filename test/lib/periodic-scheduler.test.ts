import { expect, test, vi } from 'vitest'

import { periodicScheduler } from '../../src/lib/periodic-scheduler.ts'
import { eventually } from '../support/eventually.ts'

test('scheduled tasks whose periods are equal or multiples of each other run in one event loop turn', async () => {
  const turns: string[][] = []
  let turn: string[] | null = null
  const note = (name: string) => () => {
    if (turn === null) {
      turn = []
      turns.push(turn)
      setImmediate(() => (turn = null))
    }
    turn.push(name)
  }
  const stops = [
    periodicScheduler.every(20, note('short')),
    periodicScheduler.every(40, note('long')),
    periodicScheduler.every(40, note('other long')),
  ]
  await eventually(() => expect(turns.filter((one) => one.length === 3).length).toBeGreaterThan(3))
  for (const stop of stops) stop()
  for (const names of turns) {
    expect([['short'], ['short', 'long', 'other long']]).toContainEqual(names)
  }
})

test('a scheduled task that is stopped does not run again, and other tasks continue', async () => {
  const counts = { stopped: 0, kept: 0 }
  const stop = periodicScheduler.every(10, () => {
    counts.stopped += 1
    stop()
  })
  const stopKept = periodicScheduler.every(10, () => (counts.kept += 1))
  await eventually(() => expect(counts.kept).toBeGreaterThan(3))
  stopKept()
  const { kept } = counts
  expect(counts.stopped).toBe(1)
  let later = 0
  const stopLater = periodicScheduler.every(10, () => (later += 1))
  await eventually(() => expect(later).toBeGreaterThan(2))
  stopLater()
  expect(counts).toEqual({ stopped: 1, kept })
})

test('runs of a scheduled task that were missed while the process stalled are skipped', async () => {
  const ranAtMs: number[] = []
  const stop = periodicScheduler.every(10, () => ranAtMs.push(performance.now()))
  await eventually(() => expect(ranAtMs).not.toEqual([]))
  ranAtMs.length = 0
  const endMs = performance.now() + 200
  while (performance.now() < endMs);
  await eventually(() => expect(ranAtMs.length).toBeGreaterThanOrEqual(10))
  stop()
  // The first and the last run may be late, especially on a busy machine. If missed runs were
  // repeated, twenty of them would take only a few ms.
  const [first = 0, tenth = 0] = [ranAtMs[0], ranAtMs[9]]
  expect(tenth - first).toBeGreaterThanOrEqual(70)
})

test('a scheduled task runs even if another task was added under fake timers', async () => {
  // A second instance of the module, which has no timer yet.
  const another = new URL('../../src/lib/periodic-scheduler.ts?another', import.meta.url).href
  const { periodicScheduler: fresh } = (await import(another)) as {
    readonly periodicScheduler: typeof periodicScheduler
  }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const stopFirst = fresh.every(5, () => undefined)
  vi.useRealTimers()
  let runs = 0
  const stop = fresh.every(20, () => (runs += 1))
  await eventually(() => expect(runs).toBeGreaterThan(0))
  stop()
  stopFirst()
})
