import { assert } from '../lib/assert.ts'

/**
 * Options of the Raft core. A tick is 50 ms by default. Sizes are bytes of entries including
 * headers.
 */
export interface CoreOptions {
  /** Interval at which a leader sends heartbeats to its peers. */
  readonly heartbeatTicks: number
  /**
   * If a leader was silent for this time, other nodes may vote for a new leader. A leader that had
   * no contact to a quorum for this time steps down.
   */
  readonly electionTimeoutTicks: number
  /** Maximum of a follower's random election timeout; its minimum is electionTimeoutTicks. */
  readonly electionTimeoutTicksMax: number
  /** Maximum bytes of one append request; a single entry that is larger is sent alone. */
  readonly appendBytesMax: number
  /** The leader sends no further entries to a peer that has not acknowledged this many bytes. */
  readonly windowBytesMax: number
  /** Maximum unacknowledged append requests that are sent to one peer. */
  readonly windowMessagesMax: number
  /**
   * Maximum bytes that this leader has logged but not yet applied; at the limit, it refuses
   * proposals before logging. A follower drops new entries while as many bytes are committed but
   * not applied.
   */
  readonly uncommittedBytesMax: number
  /**
   * Maximum entries that the Raft core has passed to the state machine, and that the state machine
   * has not yet reported as applied. The leader refuses proposals while as many entries are
   * committed but not applied.
   */
  readonly applyLagEntriesMax: number
  /**
   * Maximum bytes of committed entries that the Raft core passes to the state machine in one batch;
   * a larger entry is passed alone. The state machine may have up to twice as many bytes, and one
   * more entry, before it reports them as applied.
   */
  readonly applyBytesMax: number
  /**
   * Maximum linearizable reads that wait on this node; it refuses a further read with OVERLOADED.
   */
  readonly readsMax: number
  /** Maximum time by which a leader moves log time ahead of the quorum's clocks. */
  readonly clockSkewMaxMs: number
  /** A learner may become a voter when it lacks at most this many entries. */
  readonly promotionLagEntriesMax: number
  /** A leader transfers leadership if its oldest pending write has waited for this time. */
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

/**
 * Checks each option, and the options against each other.
 * @throws {AssertionError} when an option is not a positive integer, or two options contradict each
 * other.
 */
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
