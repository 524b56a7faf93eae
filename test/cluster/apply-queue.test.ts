import { expect, test } from 'vitest'

import { CounterMachine } from '../../bench/support/counter-machine.ts'
import { ApplyQueue } from '../../src/cluster/replication/apply-queue.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { AppliedEntry } from '../../src/ports/replicated-state-machine.ts'
import { encodeEntries } from '../../src/raft/entry-codec.ts'
import type { Entry, Index } from '../../src/raft/types.ts'

const none = new Uint8Array(0)
const entriesTo = (from: Index, to: Index): Uint8Array =>
  encodeEntries(
    Array.from({ length: to - from + 1 }, (_, i): Entry => ({
      index: from + i,
      term: 1,
      timeMs: 1,
      type: 'noop',
      data: none,
    })),
  )

function stage() {
  const machine = new CounterMachine({ persistEntries: 1000, isChained: true })
  const applied: Index[] = []
  const made = new ApplyQueue({
    machine,
    clock: systemClock,
    onApplied: (_entry: Entry, { index }: AppliedEntry) => applied.push(index),
    onProgress: () => progress.push(made.applied),
    onFailed: (error) => {
      throw error
    },
  })
  const progress: Index[] = []
  return { machine, applied, progress, made }
}

/** Replaces the state, as a snapshot of another member does. */
async function replace(machine: CounterMachine, index: Index): Promise<void> {
  const further = new CounterMachine({ persistEntries: 1000, isChained: true })
  for (let at = 1; at <= index; at += 1) {
    further.apply({ index: at, term: 1, timeMs: 1, type: 'noop', data: none })
  }
  const receiver = await machine.receive()
  for await (const chunk of (await further.snapshot()).chunks()) await receiver.write(chunk)
  await receiver.finish()
  await machine.restore(receiver)
}

test('the apply queue applies no entry while the state is being replaced, and applies later entries afterwards', async () => {
  const { machine, applied, made } = stage()
  made.push(entriesTo(1, 4))
  made.pause()
  made.push(entriesTo(5, 8))
  expect(applied).toEqual([1, 2, 3, 4])
  await replace(machine, 6)
  made.resumeAfter(6)
  expect(applied).toEqual([1, 2, 3, 4, 7, 8])
})

test('the applied index that the apply queue reports covers only received entries, even if the state was replaced by one with later entries', async () => {
  const { machine, applied, progress, made } = stage()
  made.push(entriesTo(1, 4))
  made.pause()
  await replace(machine, 20)
  made.resumeAfter(20)
  expect(made.applied).toBe(4)
  made.push(entriesTo(5, 12))
  expect([applied, progress.at(-1)]).toEqual([[1, 2, 3, 4], 12])
  made.push(entriesTo(13, 22))
  expect([applied, made.applied]).toEqual([[1, 2, 3, 4, 21, 22], 22])
})

test('after a snapshot the apply queue continues at the index of the snapshot', async () => {
  const { machine, applied, made } = stage()
  made.pause()
  await replace(machine, 20)
  made.restartAfter(20)
  expect(made.applied).toBe(20)
  made.push(entriesTo(21, 22))
  expect([applied, made.applied]).toEqual([[21, 22], 22])
})
