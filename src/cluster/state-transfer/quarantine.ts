import type { Clock } from '../../lib/clock.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import type { Logger } from '../logger.ts'

/**
 * Phases of a quarantine. The controller answers requests from its state only in phase `well`.
 * - well: the state is not known to be wrong.
 * - rebuilding: the controller replaces the wrong state. It applies nothing meanwhile; after
 *   `holdMsMax`, it applies entries between two attempts.
 * - proving: the new state is installed, but a majority has not confirmed it yet.
 * - stuck: repeated rebuilds failed, so another rebuild would not help.
 */
type QuarantinePhase = 'well' | 'rebuilding' | 'proving' | 'stuck'

/**
 * Record of a quarantine that survives a restart: a controller must not answer requests from a
 * wrong state after a restart either.
 */
export interface QuarantineRecord {
  isSet(): boolean
  /**
   * Writes the record, which is durable when the call returns. @throws the error of the file
   * system.
   */
  set(reason: string): void
  /** Removes the record. @throws the error of the file system. */
  clear(): void
}

interface QuarantineDeps {
  readonly clock: Clock
  readonly alarms: AlarmRaiser
  readonly log: Logger
  /** Record of a quarantine that survives a restart; null: the quarantine ends with the process. */
  readonly mark: QuarantineRecord | null
}

export const quarantineLimits = {
  /**
   * Maximum rebuilds within `rebuildsWindowMs`; more rebuilds indicate a systematic error, so the
   * controller stops rebuilding.
   */
  rebuildsMax: 3,
  /** Time window in which `rebuildsMax` counts rebuilds. */
  rebuildsWindowMs: 3_600_000,
  /** Delay between two attempts to get another state; it doubles after each failure. */
  retryMsMin: 500,
  /** Maximum delay between two attempts to get another state. */
  retryMsMax: 30_000,
  /**
   * Maximum time for which the controller applies no entries while no other state is available.
   * After that, it applies entries between the attempts, although the state is wrong: otherwise the
   * log, which is compacted only up to the applied index, would grow without limit.
   */
  holdMsMax: 60_000,
} as const

/** Decides whether this controller may answer from its state, and how it gets a correct one. */
export class Quarantine {
  readonly #deps: QuarantineDeps
  #phase: QuarantinePhase = 'well'
  #reason = ''
  /** Monotonic times at which the rebuilds within the window started. */
  #begunMs: number[] = []
  /**
   * Index at which the current state was installed; reports about lower indexes concern the
   * previous state.
   */
  #rebuiltAt: Index = 0
  #failures = 0
  #dueMs = 0

  constructor(deps: QuarantineDeps) {
    this.#deps = deps
    if (deps.mark?.isSet() !== true) return
    this.#phase = 'rebuilding'
    this.#raiseAlarm('state divergence was found before this start')
  }

  get phase(): QuarantinePhase {
    return this.#phase
  }

  /** True while the controller must not answer from its state. */
  get isQuarantined(): boolean {
    return this.#phase !== 'well'
  }

  /** Number of failed attempts to fetch a state since the state was last found to differ. */
  get failures(): number {
    return this.#failures
  }

  isRebuildDue(nowMs: number): boolean {
    return this.#phase === 'rebuilding' && nowMs >= this.#dueMs
  }

  /**
   * Called when the state of a majority differs from this controller's state.
   * @returns whether this changes the phase.
   */
  foundOdd(index: Index, agreeing: readonly NodeId[]): boolean {
    if (this.#phase === 'rebuilding' || this.#phase === 'stuck') return false
    const nowMs = this.#deps.clock.monotonicMs()
    const { rebuildsMax, rebuildsWindowMs } = quarantineLimits
    this.#begunMs = this.#begunMs.filter((atMs) => nowMs - atMs < rebuildsWindowMs)
    const isStuck = this.#begunMs.length >= rebuildsMax
    if (!isStuck) this.#begunMs.push(nowMs)
    this.#phase = isStuck ? 'stuck' : 'rebuilding'
    this.#failures = 0
    this.#dueMs = nowMs
    const differs = `state at index ${index} differs from ${agreeing.join(' and ')}`
    this.#raiseAlarm(
      isStuck
        ? `${differs}, also after ${rebuildsMax} rebuilds; out of service until it is restarted`
        : differs,
    )
    this.#setMark()
    return true
  }

  /** Called when another state was installed, as of `index`. */
  replaced(index: Index): void {
    if (this.#phase !== 'rebuilding' && this.#phase !== 'proving') return
    this.#phase = 'proving'
    this.#rebuiltAt = index
    this.#deps.log.info({ index }, `state rebuilt at index ${index}; verifying`)
  }

  /** Called when an attempt to get another state failed. */
  failed(reason: string): void {
    const { retryMsMin, retryMsMax } = quarantineLimits
    const waitMs = Math.min(retryMsMin * 2 ** this.#failures, retryMsMax)
    this.#failures += 1
    this.#dueMs = this.#deps.clock.monotonicMs() + waitMs
    this.#deps.log.warn({ reason, waitMs }, `state not rebuilt yet: ${reason}`)
  }

  /**
   * Called when a majority has the same state at `index`.
   * @returns whether this ends the quarantine.
   */
  agreed(index: Index): boolean {
    if (this.#phase !== 'proving' || index < this.#rebuiltAt) return false
    this.#phase = 'well'
    try {
      this.#deps.mark?.clear()
    } catch (err) {
      // If the file remains, the next start begins in quarantine and rebuilds a correct state,
      // which is slow but safe.
      this.#deps.log.error({ err }, 'cannot remove the QUARANTINE file')
    }
    this.#deps.alarms.clear('STATE_QUARANTINED')
    return true
  }

  #raiseAlarm(reason: string): void {
    this.#reason = `state differs from the majority; requests are refused: ${reason}`
    this.#deps.alarms.raise('STATE_QUARANTINED', { reason: this.#reason })
  }

  #setMark(): void {
    try {
      this.#deps.mark?.set(this.#reason)
    } catch (err) {
      this.#deps.log.error(
        { err },
        'cannot write the QUARANTINE file; a restart would lift the quarantine',
      )
    }
  }
}
