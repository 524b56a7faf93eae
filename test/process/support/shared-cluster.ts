import { afterAll, beforeAll, describe } from 'vitest'
import { requirePresent } from '../../../src/lib/assert.ts'
import { TestCluster } from './cluster.ts'
import { expectMembers, Fleet } from './fleet.ts'

// One cluster for the cases of several subjects: forming three controllers takes longer than most
// cases.
//
// A test file calls `shareCluster` or `shareFleet`, then `subject` for each module of cases. Each
// module gets the cluster from `sharedCluster` or `sharedFleet` in its own `beforeAll`. A module
// can run alone (`vitest run --project process test/process/people.test.ts -t mfa`) and does not
// depend on the modules before it: it gives its records names that no other module uses, and counts
// only those records. A case that ends a controller starts it again.

let cluster: TestCluster | null = null
let fleet: Fleet | null = null

/**
 * Forms a cluster of three controllers with quickstart before the first case of this file, and ends
 * it after the last case.
 */
export function shareCluster(options: { readonly hasCalmElections?: boolean } = {}): void {
  beforeAll(async () => {
    cluster = await TestCluster.start(options)
  })
  afterAll(async () => {
    const ended = cluster
    cluster = null
    await ended?.[Symbol.asyncDispose]()
  })
}

/** Like `shareCluster`, but with `cluster init` and `cluster join`. */
export function shareFleet(env: Readonly<Record<string, string>> = {}): void {
  beforeAll(async () => {
    fleet = await Fleet.create(3, { env })
    await fleet.init()
    for (const k of [2, 3]) await fleet.join(k, 1)
    await expectMembers(fleet, [1, 2, 3])
  })
  afterAll(async () => {
    const ended = fleet
    fleet = null
    await ended?.[Symbol.asyncDispose]()
  })
}

export function sharedCluster(): TestCluster {
  return requirePresent(cluster, 'the cluster of a file that calls shareCluster')
}

export function sharedFleet(): Fleet {
  return requirePresent(fleet, 'the cluster of a file that calls shareFleet')
}

/**
 * Registers the cases of a module. After these cases, the running controllers must have equal
 * states.
 */
export function subject(name: string, load: () => Promise<unknown>): void {
  describe(name, async () => {
    // This is the first registered hook, so it runs last, after the hooks that close what the
    // module opened.
    afterAll(async () => {
      await cluster?.untilWhole()
      await (cluster ?? fleet)?.compareDigests()
    })
    await load()
  })
}
