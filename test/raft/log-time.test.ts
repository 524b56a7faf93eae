import { expect, test } from 'vitest'

import type { Message } from '../../src/raft/types.ts'
import { text } from './members.ts'
import { ScriptCluster } from './script-cluster.ts'

// Goal: timestamps never decrease, regardless of the clocks, and lifetimes measured with them still
// end.

const three = { voters: ['1', '2', '3'] }

function stamps(cluster: ScriptCluster): number[] {
  return cluster
    .core('1')
    .entries(3, Infinity)
    .map((entry) => entry.timeMs)
}

/**
 * Timestamps of `count` entries of leader 1, with a tick before each, while all clocks show
 * `clockMs`.
 */
function stampedAt(cluster: ScriptCluster, clockMs: number, count: number, tickMs = 50): number[] {
  for (let at = 1; at <= count; at += 1) {
    const nowMs = clockMs + at * tickMs
    for (const from of ['2', '3']) {
      const heard = {
        type: 'heartbeatResponse',
        readSequence: 0,
        clockMs: nowMs,
        term: 2,
      } as const
      const message = { ...heard, from, to: '1' } as Message
      cluster.step('1', { type: 'message', message, nowMs })
    }
    cluster.step('1', { type: 'tick', nowMs })
    const proposals = [{ id: 100 + at, data: text(`${at}`) }]
    cluster.step('1', { type: 'propose', proposals, nowMs })
  }
  return stamps(cluster).slice(-count)
}

const rightMs = 1_700_000_000_000
const dayMs = 24 * 60 * 60 * 1000

test('log time advances at half speed while it is far ahead of the clocks', () => {
  const cluster = new ScriptCluster(three)
  cluster.elect('1')
  const [wrongMs = 0] = stampedAt(cluster, rightMs + dayMs, 1)
  const later = stampedAt(cluster, rightMs, 9)
  expect(later[0], 'when the clocks are set back, log time does not advance').toBe(wrongMs)
  expect(later.at(-1)).toBe(wrongMs + (8 * 50) / 2)
  expect(later).toEqual(later.toSorted((a, b) => a - b))
  const small = new ScriptCluster(three)
  small.elect('1')
  const [aheadMs = 0] = stampedAt(small, rightMs + 9_000, 1)
  expect(
    new Set(stampedAt(small, rightMs, 9)),
    'within the allowed skew, log time waits for the clocks',
  ).toEqual(new Set([aheadMs]))
})

test('timestamps never decrease after a reset of log time, and are ahead of the clocks by the amount that the reset subtracts', () => {
  const cluster = new ScriptCluster(three)
  cluster.elect('1')
  const [wrongMs = 0] = stampedAt(cluster, rightMs + dayMs, 1)
  cluster.settle()
  const { applied } = cluster.core('1').fullStatus
  const setbackMs = dayMs
  cluster.step('1', { type: 'applied', index: applied, timeMs: wrongMs, setbackMs })
  const later = stampedAt(cluster, rightMs + 1000, 3)
  expect(later).toEqual([1, 2, 3].map((at) => rightMs + 1000 + at * 50 + setbackMs))
  expect(later[0]).toBeGreaterThan(wrongMs)
})
