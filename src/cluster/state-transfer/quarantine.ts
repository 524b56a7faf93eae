import type { Clock } from '../../lib/clock.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import type { Logger } from '../logger.ts'

/**
 * well: it answers. rebuilding: nothing is applied until another state has taken the place of the
 * wrong one. proving: the new state is in place and not yet known to be that of the majority.
 * stuck: each new state went wrong again, so that another would not help. It answers in `well`
 * alone.
 */
export type QuarantinePhase = 'well' | 'rebuilding' | 'proving' | 'stuck'

/**
 * Outlives the process: a state that was found wrong must not answer after a restart before it is
 * compared again.
 */
export interface QuarantineMark {
  isSet(): boolean
  /** Durable when it returns. @throws the error of the file system. */
  set(because: string): void
  /** @throws the error of the file system. */
  clear(): void
}

export interface QuarantineParts {
  readonly clock: Clock
  readonly alarms: AlarmRaiser
  readonly log: Logger
  /** null: a restart forgets the quarantine. */
  readonly mark: QuarantineMark | null
}

export const quarantineLimits = {
  /** Within `rebuildsWindowMs`; a state that goes wrong so often is not wrong by chance. */
  rebuildsMax: 3,
  rebuildsWindowMs: 3_600_000,
  /** Between attempts to get another state, doubled with each that fails. */
  retryMsMin: 500,
  retryMsMax: 30_000,
  /**
   * Nothing is applied for so long while no other state is to be had. After that apply goes on
   * between the attempts, though into a state that is wrong: the log is cut only behind it, and
   * grows as long as it waits.
   */
  holdMsMax: 60_000,
} as const

/**
 * Whether the state of this controller may be answered from, and what is to be done until it may.
 */
export class Quarantine {
  readonly #parts: QuarantineParts
  #phase: QuarantinePhase = 'well'
  #because = ''
  /** When a rebuild was begun, monotonic; those within the window. */
  #begunMs: number[] = []
  /**
   * Index as of which the state was replaced: what was said of an earlier one is of the state
   * before.
   */
  #rebuiltAt: Index = 0
  #failures = 0
  #dueMs = 0

  constructor(parts: QuarantineParts) {
    this.#parts = parts
    if (parts.mark?.isSet() !== true) return
    this.#phase = 'rebuilding'
    this.#tell('state divergence was found before this start')
  }

  get phase(): QuarantinePhase {
    return this.#phase
  }

  /** It answers nothing that rests on its state. */
  get isQuarantined(): boolean {
    return this.#phase !== 'well'
  }

  /** Attempts since the last that succeeded. */
  get failures(): number {
    return this.#failures
  }

  isRebuildDue(nowMs: number): boolean {
    return this.#phase === 'rebuilding' && nowMs >= this.#dueMs
  }

  /** A majority holds another state than the one in place. @returns whether that is news. */
  foundOdd(index: Index, agreeing: readonly NodeId[]): boolean {
    if (this.#phase === 'rebuilding' || this.#phase === 'stuck') return false
    const nowMs = this.#parts.clock.monotonicMs()
    const { rebuildsMax, rebuildsWindowMs } = quarantineLimits
    this.#begunMs = this.#begunMs.filter((atMs) => nowMs - atMs < rebuildsWindowMs)
    const isStuck = this.#begunMs.length >= rebuildsMax
    if (!isStuck) this.#begunMs.push(nowMs)
    this.#phase = isStuck ? 'stuck' : 'rebuilding'
    this.#failures = 0
    this.#dueMs = nowMs
    const differs = `state at index ${index} differs from ${agreeing.join(' and ')}`
    this.#tell(
      isStuck
        ? `${differs}, also after ${rebuildsMax} rebuilds; out of service until it is restarted`
        : differs,
    )
    this.#setMark()
    return true
  }

  /** Another state stands in its place, as of `index`. */
  replaced(index: Index): void {
    if (this.#phase !== 'rebuilding' && this.#phase !== 'proving') return
    this.#phase = 'proving'
    this.#rebuiltAt = index
    this.#parts.log.info({ index }, `state rebuilt at index ${index}; verifying`)
  }

  /** No other state was got. */
  failed(because: string): void {
    const { retryMsMin, retryMsMax } = quarantineLimits
    const waitMs = Math.min(retryMsMin * 2 ** this.#failures, retryMsMax)
    this.#failures += 1
    this.#dueMs = this.#parts.clock.monotonicMs() + waitMs
    this.#parts.log.warn({ because, waitMs }, `state not rebuilt yet: ${because}`)
  }

  /** A majority holds the same state at `index`. @returns whether this ends the quarantine. */
  agreed(index: Index): boolean {
    if (this.#phase !== 'proving' || index < this.#rebuiltAt) return false
    this.#phase = 'well'
    try {
      this.#parts.mark?.clear()
    } catch (err) {
      // The next start is in quarantine again, and rebuilds a state that was right: slow, and not
      // wrong.
      this.#parts.log.error({ err }, 'cannot remove the QUARANTINE file')
    }
    this.#parts.alarms.clear('STATE_QUARANTINED')
    return true
  }

  #tell(because: string): void {
    this.#because = `state differs from the majority; requests are refused: ${because}`
    this.#parts.alarms.raise('STATE_QUARANTINED', { reason: this.#because })
  }

  #setMark(): void {
    try {
      this.#parts.mark?.set(this.#because)
    } catch (err) {
      this.#parts.log.error(
        { err },
        'cannot write the QUARANTINE file; a restart would lift the quarantine',
      )
    }
  }
}
