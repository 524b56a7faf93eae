import { afterEach, expect, test } from 'vitest'

import type { Applied } from '../../src/ports/proposer.ts'
import { command, formCluster } from './cluster-fixture.ts'
import type { TestCluster } from './cluster-fixture.ts'
import { until } from './mesh-fixture.ts'

const clusters: TestCluster[] = []

async function cluster(size: number): Promise<TestCluster> {
  const formed = await formCluster(size)
  clusters.push(formed)
  return formed
}

async function runningCluster(size: number): Promise<TestCluster> {
  const formed = await cluster(size)
  await Promise.all(formed.ids.map(async (id) => await formed.start(id)))
  await formed.leader()
  return formed
}

afterEach(async () => {
  await Promise.all(clusters.splice(0).map(async (formed) => await formed.stop()))
})

test('three controllers elect a leader, and each takes writes and has them all', async () => {
  const formed = await runningCluster(3)
  const writes: Promise<Applied>[] = []
  for (const id of formed.ids) {
    for (let i = 0; i < 50; i += 1) {
      writes.push(formed.node(id).gateway.propose(command(`${id}-${i}`)))
    }
  }
  const results = await Promise.all(writes)
  expect(new Set(results.map(({ index }) => index)).size).toBe(150)
  expect(results.every(({ outcome }) => outcome.ok)).toBe(true)
  const [first, ...others] = formed.ids.map((id) => formed.node(id))
  await until('all have applied all', () =>
    formed.ids.every((id) => formed.node(id).effects.length === 150),
  )
  for (const other of others) expect(other.effects).toEqual(first?.effects)
})
