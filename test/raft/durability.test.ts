import { expect, test } from 'vitest'
import { DurabilityTracker } from '../../src/raft/durability.ts'

test('a response to an append request waits for the write of its entries, even if the write is not issued yet, and does not wait if the entries are durable', () => {
  const durability = new DurabilityTracker(2)
  expect(durability.tokenFor(2)).toBe(0)
  expect(durability.tokenFor(3)).toBe(1)
  expect(durability.issue(3, 0)).toBe(1)
  expect(durability.tokenFor(3)).toBe(1)
  durability.persisted(1)
  expect(durability.tokenFor(3)).toBe(0)
  expect(durability.durableIndex).toBe(3)
})

test('a late report of a write does not make entries durable that replaced the written entries (order: append, overwrite, report)', () => {
  const durability = new DurabilityTracker(2)
  durability.issue(3, 0)
  durability.touchHardState()
  durability.issue(3, 0)
  // Entry 3 is replaced while both writes are pending.
  durability.truncate(3)
  durability.persisted(2)
  expect(durability.durableIndex).toBe(2)
  expect(durability.tokenFor(3)).toBe(3)
  expect(durability.issue(3, 0)).toBe(3)
  durability.persisted(3)
  expect(durability.durableIndex).toBe(3)
})

test('an entry counts as durable only together with the term in which it was accepted', () => {
  const durability = new DurabilityTracker(2)
  durability.issue(4, 0)
  durability.touchHardState()
  expect(durability.tokenFor(4)).toBe(2)
  durability.issue(4, 0)
  durability.persisted(1)
  expect(durability.tokenFor(4)).toBe(2)
})

test('no entry counts as durable while the log is being replaced, until the replacement is durable', () => {
  const durability = new DurabilityTracker(9)
  durability.issue(12, 0)
  const token = durability.reset(50, 9, 0)
  durability.persisted(token - 1)
  expect(durability.durableIndex).toBe(9)
  expect(durability.tokenFor(50)).toBe(token)
  durability.persisted(token)
  expect(durability.durableIndex).toBe(50)
})

test('the report of a write that was never issued fails an assertion', () => {
  expect(() => {
    new DurabilityTracker(2).persisted(1)
  }).toThrow('never issued')
})
