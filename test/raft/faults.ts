import type { Random } from '../../src/lib/random.ts'
import { type CoreOptions, defaultCoreOptions } from '../../src/raft/options.ts'
import type { NodeId } from '../../src/raft/types.ts'

/**
 * Faults of one run. Each chance applies per message, per sync, or per 100 ms and node. Times in
 * ms.
 */
export interface Faults {
  readonly nodes: number
  readonly lossChance: number
  readonly repeatChance: number
  readonly lateChance: number
  readonly delayMsMax: number
  readonly crashChance: number
  readonly partitionChance: number
  readonly rejoinChance: number
  readonly breakChance: number
  readonly transferChance: number
  readonly changeChance: number
  readonly slowDiskChance: number
  readonly syncMsMax: number
  readonly applyMsMax: number
  readonly proposeMs: number
  readonly batchMax: number
  readonly readMs: number
  readonly compactMs: number
  readonly clockOffsetsMs: ReadonlyMap<NodeId, number>
  readonly isStampChecked: boolean
  /** Chance that a disk loses a part of its log when its node crashes. */
  readonly damageChance: number
}

/**
 * Each kind of fault is absent from some runs, because a constant fault would hide bugs that occur
 * only without it.
 */
export function drawFaults(chance: Random): Faults {
  const sometimes = (value: number): number => (chance.next() < 0.6 ? value * chance.next() : 0)
  const nodes = chance.next() < 0.6 ? 3 : 5
  const changeChance = chance.next() < 0.5 ? 0.05 * chance.next() : 0
  const offsets = new Map<NodeId, number>()
  if (chance.next() < 0.3) offsets.set('n1', chance.integer(-3_600_000, 3_600_000))
  return {
    nodes,
    lossChance: sometimes(0.3),
    repeatChance: sometimes(0.2),
    lateChance: sometimes(0.1),
    delayMsMax: chance.integer(1, 60),
    crashChance: sometimes(0.02),
    partitionChance: sometimes(0.06),
    rejoinChance: 0.02 + 0.1 * chance.next(),
    breakChance: sometimes(0.05),
    transferChance: sometimes(0.03),
    changeChance,
    slowDiskChance: sometimes(0.03),
    syncMsMax: chance.integer(1, 40),
    applyMsMax: chance.integer(0, 60),
    proposeMs: chance.integer(5, 200),
    batchMax: chance.integer(1, 12),
    readMs: chance.integer(20, 300),
    compactMs: chance.integer(200, 3_000),
    clockOffsetsMs: offsets,
    isStampChecked: changeChance === 0,
    damageChance: changeChance === 0 ? chance.next() : 0,
  }
}

/** Limits so small that a run reaches each of them. */
export function drawOptions(chance: Random): CoreOptions {
  if (chance.next() < 0.3) return defaultCoreOptions
  return {
    ...defaultCoreOptions,
    appendBytesMax: chance.integer(100, 4_000),
    windowBytesMax: chance.integer(100, 16_000),
    windowMessagesMax: chance.integer(1, 12),
    uncommittedBytesMax: chance.integer(500, 20_000),
    applyLagEntriesMax: chance.integer(4, 400),
    applyBytesMax: chance.integer(100, 10_000),
    readsMax: chance.integer(1, 20),
    promotionLagEntriesMax: chance.integer(1, 100),
    diskStallTicks: chance.integer(4, 60),
  }
}
