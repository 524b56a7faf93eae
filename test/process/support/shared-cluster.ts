import { afterAll, beforeAll, describe } from 'vitest'
import { present } from '../../../src/lib/assert.ts'
import { until } from './client.ts'
import { TestCluster } from './cluster.ts'

// One cluster for the cases of several subjects: forming three controllers takes longer than most cases.
//
// A file of tests calls `shareCluster`, then `subject` for each module of cases, which takes the cluster by `sharedCluster` in its own
// `beforeAll`. A module may run alone (`vitest run --project process test/process/people.test.ts -t mfa`), so it expects nothing of
// the modules before it: it makes records of its own names, and compares only those. A case that ends a controller starts it again.

const NODES = [1, 2, 3]

let shared: TestCluster | null = null

/** Forms a cluster of three controllers before the first case of this file, and ends it after the last one. */
export function shareCluster(): void {
  beforeAll(async () => {
    shared = await TestCluster.start()
  })
  afterAll(async () => {
    const cluster = shared
    shared = null
    await cluster?.[Symbol.asyncDispose]()
  })
}

/** The cluster of the file that runs. */
export function sharedCluster(): TestCluster {
  return present(shared, 'the cluster of a file that calls shareCluster')
}

/** The cases that a module registers; they leave all controllers connected, with equal states. */
export function subject(name: string, load: () => Promise<unknown>): void {
  describe(name, async () => {
    afterAll(async () => {
      const cluster = sharedCluster()
      for (const k of NODES) {
        await until(`ctrl${k} is connected to the others after the cases of ${name}`, async () => {
          const members = await cluster.status(k)
          const isWhole = members.every(({ lastContactMs }) => lastContactMs !== null)
          return isWhole && members.some(({ role }) => role === 'leader')
        })
      }
      await cluster.compareDigests()
    })
    await load()
  })
}
