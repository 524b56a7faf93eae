import { assert } from '../../../src/lib/assert.ts'
import { DurabilityTracker } from '../../../src/raft/durability.ts'

/**
 * Entries 1 to 5 are being written to the disk; 4 and 5 are replaced, and being written again, when
 * the first write completes.
 */
export function scenario(): void {
  const durability = new DurabilityTracker(0)
  const first = durability.issue(5, 0)
  durability.truncate(4)
  const second = durability.issue(5, 0)
  durability.persisted(first)
  const { durableIndex } = durability
  assert(durableIndex === 3, `I10: ${durableIndex} counts as durable, and 4 is of a later write`)
  durability.persisted(second)
  assert(durability.durableIndex === 5, 'I10: what is durable counts')
}
