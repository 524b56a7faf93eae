import { expect, test } from 'vitest'
import { CounterMachine } from '../../bench/support/counter-machine.ts'
import { ApplyQueue } from '../../src/cluster/replication/apply-queue.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { AppliedEntry } from '../../src/ports/replicated-state-machine.ts'
import { encodeEntries } from '../../src/raft/entry-codec.ts'
import type { Entry } from '../../src/raft/types.ts'

/**
 * A state machine that stays behind its store after a number of entries, until the test lets it
 * catch up.
 */
class SlowMachine extends CounterMachine {
  isStoreSlow = false
  appliedSince = 0

  override get isBehind(): boolean {
    return this.isStoreSlow && this.appliedSince >= 5
  }

  override apply(entry: Entry): AppliedEntry {
    this.appliedSince += 1
    return super.apply(entry)
  }
}

function packed(first: number, count: number, bytes = 0): Uint8Array<ArrayBuffer> {
  return encodeEntries(
    Array.from({ length: count }, (_, at) => ({
      index: first + at,
      term: 1,
      timeMs: 1,
      type: 'noop' as const,
      data: new Uint8Array(bytes),
    })),
  )
}

function queueOf(machine: SlowMachine) {
  const applied: number[] = []
  const queue = new ApplyQueue({
    machine,
    clock: systemClock,
    onApplied: (entry) => applied.push(entry.index),
    onProgress: () => undefined,
    onFailed: (error) => {
      throw error
    },
  })
  return { queue, applied }
}

test('the apply queue waits while the state machine’s store is slow, and continues in order afterwards', async () => {
  const machine = new SlowMachine({ persistEntries: 1000, isChained: false })
  machine.isStoreSlow = true
  const { queue, applied } = queueOf(machine)
  queue.push(packed(1, 8))
  queue.push(packed(9, 4))
  expect(applied).toEqual([1, 2, 3, 4, 5])
  for (const end of [10, 12]) {
    machine.appliedSince = 0
    queue.goOn()
    await expect.poll(() => applied.length).toBe(end)
  }
  expect(applied).toEqual(Array.from({ length: 12 }, (_, at) => at + 1))
})

test('the apply queue releases the buffer of entries once they are applied', () => {
  const machine = new SlowMachine({ persistEntries: 1000, isChained: false })
  const { queue, applied } = queueOf(machine)
  const large = packed(1, 2, 100_000)
  queue.push(large)
  expect(applied).toEqual([1, 2])
  expect(large.byteLength).toBe(0)
})
