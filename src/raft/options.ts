import { assert } from '../lib/assert.ts'

/**
 * Options of the core: times in ticks of the driver (50 ms by default), sizes in bytes of entry
 * bodies and headers.
 */
export interface CoreOptions {
  readonly heartbeatTicks: number
  /**
   * A leader that is silent for this time is no longer protected from elections. A leader without
   * its quorum for this time steps down.
   */
  readonly electionTimeoutTicks: number
  /** A follower waits for a leader for a random time from electionTimeoutTicks to this. */
  readonly electionTimeoutTicksMax: number
  /** Maximum bytes of one append request; a larger single entry is sent alone. */
  readonly appendBytesMax: number
  /** Maximum bytes sent to one peer and not yet acknowledged. */
  readonly windowBytesMax: number
  readonly windowMessagesMax: number
  /**
   * Maximum bytes that this leader has logged but not yet committed and applied; beyond it,
   * proposals are refused before logging.
   */
  readonly uncommittedBytesMax: number
  /**
   * Maximum entries handed to apply and not yet reported applied; beyond it, proposals are refused.
   */
  readonly applyLagEntriesMax: number
  /**
   * Maximum bytes of committed entries handed to apply at once. Up to twice as many may be handed
   * out before they are reported as applied.
   */
  readonly applyBytesMax: number
  readonly readsMax: number
  /** How far log time may run ahead of the quorum's clocks. */
  readonly clockSkewMaxMs: number
  /** A learner may become a voter when it lacks at most this many entries. */
  readonly promotionLagEntriesMax: number
  /** A leader transfers leadership if its oldest write has waited for this time. */
  readonly diskStallTicks: number
}

const MIB = 1024 * 1024

export const defaultCoreOptions: CoreOptions = {
  heartbeatTicks: 2,
  electionTimeoutTicks: 12,
  electionTimeoutTicksMax: 24,
  appendBytesMax: MIB / 2,
  windowBytesMax: 8 * MIB,
  windowMessagesMax: 128,
  uncommittedBytesMax: 64 * MIB,
  applyLagEntriesMax: 65_536,
  applyBytesMax: 8 * MIB,
  readsMax: 65_536,
  clockSkewMaxMs: 2_000,
  promotionLagEntriesMax: 1_000,
  diskStallTicks: 60,
}

/** @throws {AssertionError} when the options contradict each other. */
export function checkOptions(options: CoreOptions): void {
  for (const [name, value] of Object.entries(options)) {
    assert(Number.isSafeInteger(value) && value > 0, `${name} is a positive integer`)
  }
  assert(
    options.heartbeatTicks * 2 <= options.electionTimeoutTicks,
    'an election timeout spans at least two heartbeats',
  )
  assert(
    options.electionTimeoutTicks < options.electionTimeoutTicksMax,
    'election timeouts are drawn from a range, or split votes repeat',
  )
}
