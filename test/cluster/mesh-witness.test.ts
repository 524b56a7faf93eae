import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { type Hello, HelloSchema } from '../../proto/gen/mesh_pb.ts'
import { RollbackDetector } from '../../src/cluster/mesh/rollback-detector.ts'
import { storeIdOf } from './mesh-fixture.ts'

interface Said {
  readonly term: number
  /** Term and index of the last entry. */
  readonly last: readonly [number, number]
  readonly boot?: number
  readonly startedAtMs?: number
  readonly store?: string
  readonly owed?: readonly [number, number]
}

function hello({ term, last, boot = 1, startedAtMs = 1000, store = 'b', owed }: Said): Hello {
  const debt = owed === undefined ? {} : { owed: positionOf(owed) }
  return create(HelloSchema, {
    nodeId: 'b',
    storeId: storeIdOf(store),
    boot: BigInt(boot),
    startedAtMs: BigInt(startedAtMs),
    currentTerm: BigInt(term),
    last: positionOf(last),
    ...debt,
  })
}

function positionOf([term, index]: readonly [number, number]): { term: bigint; index: bigint } {
  return { term: BigInt(term), index: BigInt(index) }
}

/** Checks the Hello of a peer that connects or, if `isCaller` is false, of a peer that answers. */
function judge(witness: RollbackDetector, said: Said, isCaller = true): string {
  return witness.judge('b', hello(said), isCaller) ?? 'fine'
}

test('a member whose disk has advanced is accepted, and a member whose term decreased is refused', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 3, last: [3, 10] })).toBe('fine')
  expect(judge(witness, { term: 3, last: [3, 12] })).toBe('fine')
  expect(judge(witness, { term: 5, last: [3, 12] })).toBe('fine')
  expect(judge(witness, { term: 4, last: [4, 90], boot: 2, startedAtMs: 2000 })).toBe('rolled-back')
})

test('entries that a member acknowledged to a leader must still exist in the leader’s term, even after a restart', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 3, last: [2, 4] })).toBe('fine')
  witness.noteMatch('b', 3, 9)
  expect(judge(witness, { term: 3, last: [3, 8] })).toBe('rolled-back')
  expect(judge(witness, { term: 3, last: [3, 8], boot: 2, startedAtMs: 2000 })).toBe('rolled-back')
  expect(judge(witness, { term: 3, last: [3, 9], boot: 2, startedAtMs: 2000 })).toBe('fine')
})

test('a later leader may truncate uncommitted entries over several messages, and this does not count as a rollback', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 3, last: [3, 8] })).toBe('fine')
  // The leader of term 5 replaces entries of term 3 with its own, of which the first is of term 2.
  expect(judge(witness, { term: 5, last: [3, 8] })).toBe('fine')
  expect(judge(witness, { term: 5, last: [2, 6] })).toBe('fine')
  expect(judge(witness, { term: 5, last: [5, 7] })).toBe('fine')
  expect(judge(witness, { term: 5, last: [5, 6] })).toBe('rolled-back')
})

test('entries that a member applied must still exist in every later term', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 3, last: [3, 8] })).toBe('fine')
  witness.noteApplied('b', 1000n, 7)
  expect(judge(witness, { term: 9, last: [3, 6], boot: 2, startedAtMs: 2000 })).toBe('rolled-back')
  expect(judge(witness, { term: 9, last: [3, 7], boot: 2, startedAtMs: 2000 })).toBe('fine')
})

test('the start count (boot) reveals that a member was restarted from a restored disk, even in an idle cluster, or that a later process of the member runs', () => {
  const witness = new RollbackDetector(1)
  const idle = { term: 3, last: [3, 8] } as const
  expect(judge(witness, { ...idle, boot: 5, startedAtMs: 5000 })).toBe('fine')
  expect(judge(witness, { ...idle, boot: 4, startedAtMs: 9000 })).toBe('rolled-back')
  expect(judge(witness, { ...idle, boot: 5, startedAtMs: 9000 })).toBe('rolled-back')
  expect(judge(witness, { ...idle, boot: 6, startedAtMs: 9000 })).toBe('fine')
  expect(judge(witness, { ...idle, boot: 5, startedAtMs: 5000 })).toBe('superseded')
})

test('what a member reports when it connects is not compared with what it reports when it answers, because these messages have no common order', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 3, last: [3, 8] }, false)).toBe('fine')
  // The peer sent this message before the previous answer, but it arrives later.
  expect(judge(witness, { term: 2, last: [2, 5] })).toBe('fine')
  witness.noteMatch('b', 3, 20)
  expect(judge(witness, { term: 3, last: [3, 12] }, false)).toBe('fine')
  // A message that a restarted process sends is certainly later than both earlier messages.
  const restored = { term: 3, last: [3, 12], boot: 2, startedAtMs: 2000 } as const
  expect(judge(witness, restored, false)).toBe('rolled-back')
})

test('another disk of the same member ID is not compared with reports of the earlier disk', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 9, last: [9, 90] })).toBe('fine')
  expect(judge(witness, { term: 1, last: [1, 1], store: 'new' })).toBe('fine')
  witness.noteMatch('b', 9, 95)
  witness.retain((id) => id !== 'b')
  expect(judge(witness, { term: 1, last: [1, 1], store: 'new' })).toBe('fine')
})

test('the rollback detector ignores an applied index that a member reported before it restarted', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 3, last: [3, 8] })).toBe('fine')
  expect(judge(witness, { term: 3, last: [3, 8], boot: 2, startedAtMs: 2000 })).toBe('fine')
  witness.noteApplied('b', 1000n, 9)
  expect(judge(witness, { term: 9, last: [3, 8], boot: 3, startedAtMs: 3000 })).toBe('fine')
})

test('a restarted rollback detector still compares a member with its earlier reports, unless the cluster was recovered with a new generation', () => {
  const first = new RollbackDetector(1)
  expect(judge(first, { term: 3, last: [3, 8] })).toBe('fine')
  expect(judge(first, { term: 3, last: [3, 9] }, false)).toBe('fine')
  first.noteMatch('b', 3, 12)
  expect(first.takeChanged()).toBe(true)
  expect(first.takeChanged()).toBe(false)
  const kept = first.marks()
  expect(judge(new RollbackDetector(1, kept), { term: 3, last: [3, 11] })).toBe('rolled-back')
  expect(judge(new RollbackDetector(1, kept), { term: 3, last: [3, 12] })).toBe('fine')
  // Messages in the two directions have no common order, so an answer may be older than the
  // acknowledged index 12.
  expect(judge(new RollbackDetector(1, kept), { term: 3, last: [3, 10] }, false)).toBe('fine')
  const later = { term: 3, boot: 2, startedAtMs: 2000 } as const
  expect(judge(new RollbackDetector(1, kept), { ...later, last: [3, 11] }, false)).toBe(
    'rolled-back',
  )
  expect(judge(new RollbackDetector(1, kept), { ...later, last: [3, 12] })).toBe('fine')
  expect(judge(new RollbackDetector(1, kept), { ...later, last: [3, 1], store: 'new' })).toBe(
    'fine',
  )
  expect(judge(new RollbackDetector(2, kept), { ...later, last: [3, 1] })).toBe('fine')
})

test('a member that reports the missing tail of its damaged disk is not refused as rolled back', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 3, last: [3, 8] })).toBe('fine')
  witness.noteMatch('b', 3, 20)
  witness.noteApplied('b', 1000n, 19)
  const damaged = { term: 3, last: [2, 4], boot: 2, startedAtMs: 2000 } as const
  expect(judge(witness, damaged)).toBe('rolled-back')
  expect(judge(witness, { ...damaged, owed: [3, 20] })).toBe('fine')
  expect(judge(witness, { ...damaged, owed: [3, Number.MAX_SAFE_INTEGER] })).toBe('fine')
})

test('a member with a reported missing tail is refused if it also lacks later entries, or has a lower term or start count', () => {
  const witness = new RollbackDetector(1)
  expect(judge(witness, { term: 3, last: [3, 8], boot: 4, startedAtMs: 4000 })).toBe('fine')
  witness.noteMatch('b', 3, 20)
  const restored = { last: [3, 8], boot: 5, startedAtMs: 5000, owed: [3, 19] } as const
  expect(judge(witness, { ...restored, term: 3 })).toBe('rolled-back')
  expect(judge(witness, { ...restored, term: 2, owed: [2, 90] })).toBe('rolled-back')
  expect(judge(witness, { ...restored, term: 3, boot: 4, owed: [3, 20] })).toBe('rolled-back')
  // The acknowledged index is kept, so a disk copy from that time is detected even after the tail
  // of its log was repaired.
  expect(judge(witness, { ...restored, term: 3, owed: [3, 20] })).toBe('fine')
  witness.noteMatch('b', 3, 60)
  const copy = { ...restored, boot: 6, startedAtMs: 6000, term: 3, owed: [3, 20] } as const
  expect(judge(witness, copy)).toBe('rolled-back')
})
