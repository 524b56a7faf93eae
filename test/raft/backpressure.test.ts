import { expect, test } from 'vitest'
import { ScriptCluster } from './script-cluster.ts'

// Committed entries stay in memory until they are applied, so leader and follower limit them.

const three = { voters: ['1', '2', '3'] }

test('a follower whose state machine lags discards further entries, and accepts them again once it has applied the earlier ones', () => {
  const cluster = new ScriptCluster(three, { uncommittedBytesMax: 1000 })
  cluster.elect('1')
  cluster.settle()
  cluster.holdApply('2', true)
  for (let i = 0; i < 12; i += 1) {
    cluster.propose('1', 'x'.repeat(200))
    cluster.settle()
  }
  const held = cluster.core('2').fullStatus
  expect(cluster.core('1').fullStatus.commit).toBe(15)
  expect(held.last.index).toBeLessThan(12)
  expect(held.last.index - held.applied).toBeGreaterThan(3)
  cluster.holdApply('2', false)
  for (let i = 0; i < 20; i += 1) {
    cluster.tick('1')
    cluster.settle()
  }
  expect(cluster.core('2').fullStatus).toMatchObject({ applied: 15, commit: 15 })
})

test('a leader whose state machine lags refuses proposals before it writes them to the log', () => {
  const cluster = new ScriptCluster(three, { uncommittedBytesMax: 1000 })
  cluster.elect('1')
  cluster.settle()
  cluster.holdApply('1', true)
  cluster.events = []
  for (let i = 0; i < 6; i += 1) {
    cluster.propose('1', 'x'.repeat(200))
    cluster.settle()
  }
  expect(cluster.events.filter((event) => event === '1 refuses OVERLOADED').length).toBe(2)
  cluster.holdApply('1', false)
  cluster.propose('1', 'x'.repeat(200))
  expect(cluster.events.at(-1)).toMatch(/^1 accepts/)
})
