import type { Configuration as ConfigurationRecord } from '../../../proto/gen/membership_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import type { AlarmRaiser } from '../alarm-table.ts'
import type { MemberView } from '../../ports/cluster-view.ts'
import type { NodeId, Position } from '../../raft/types.ts'
import { configurationFailureTolerance } from './failure-tolerance.ts'
import { quorumClockMs } from './quorum-clock.ts'

/**
 * A larger offset of a member's clock raises the alarm. The Raft core has the same limit for how
 * far log time may advance beyond the clocks of a quorum.
 */
const CLOCK_SKEW_MS_MAX = 2000
/**
 * Minimum duration of a condition before its alarm is raised: a single delayed message makes a
 * clock look slow and proves nothing.
 */
const HOLDS_MS = 5000
/**
 * If log time is further ahead of a quorum's clocks than this, entries got their timestamps while
 * clocks were wrong.
 */
const LOG_TIME_AHEAD_MS_MAX = 10_000
/**
 * The alarm CLOCK_SKEW is cleared only at or below this lower bound. With a single bound, a clock
 * that is off by about 2 s would raise and clear the alarm repeatedly.
 */
const CLOCK_SKEW_OVER_MS = 1500
/** Time for which a condition must be absent before its alarm is cleared. */
const OVER_MS = 30_000
/**
 * The alarm LOW_SPACE is cleared only when the free space is at least this multiple of the limit.
 * Otherwise, each new or deleted segment could raise or clear the alarm.
 */
const LOW_SPACE_OVER = 1.25

/**
 * Raises and clears alarms about members, clocks, the disk and a damaged log. An alarm about
 * members or clocks is raised once its condition has lasted for 5 s. It is cleared once the
 * condition has been absent for 30 s, or can no longer exist (after the removal of the member, or
 * with fewer than three voters). The other alarms follow their condition immediately.
 */
export class AlarmWatch {
  readonly #alarms: AlarmRaiser
  readonly #clock: Clock
  readonly #lowSpaceBytes: number
  readonly #conditions = new Map<string, Condition>()

  /** @param lowSpaceBytes free space of the log's file system below which LOW_SPACE is raised. */
  constructor(alarms: AlarmRaiser, clock: Clock, lowSpaceBytes: number) {
    this.#alarms = alarms
    this.#clock = clock
    this.#lowSpaceBytes = lowSpaceBytes
  }

  /**
   * Updates the alarms about members, clocks and free space.
   * @param freeBytes free bytes of the log's file system; null if unknown.
   */
  look(
    record: ConfigurationRecord,
    members: readonly MemberView[],
    { freeBytes, logTimeMs }: { readonly freeBytes: number | null; readonly logTimeMs: number },
  ): void {
    this.#lookAtClocks(members)
    this.#lookAtLogTime(record, members, logTimeMs)
    this.#lookAtTolerance(record, members)
    if (freeBytes !== null && freeBytes < this.#lowSpaceBytes) {
      this.#alarms.raise('LOW_SPACE', { freeBytes })
    } else if (freeBytes !== null && freeBytes >= this.#lowSpaceBytes * LOW_SPACE_OVER) {
      this.#alarms.clear('LOW_SPACE')
    }
  }

  /**
   * Updates the alarm about a log that lacks acknowledged entries.
   * @param owed the missing tail of the log (raft/missing-tail.ts); null if nothing is missing.
   */
  lookAtDebt(owed: Position | null): void {
    if (owed === null) {
      this.#alarms.clear('LOG_REPAIRING')
      return
    }
    const { term, index } = owed
    const isKnown = index !== Number.MAX_SAFE_INTEGER
    this.#alarms.raise('LOG_REPAIRING', { term, index: isKnown ? index : null })
  }

  #lookAtClocks(members: readonly MemberView[]): void {
    for (const { id, vitals } of members) {
      const offsetMs = vitals?.clockOffsetMs ?? 0
      const awayMs = Math.abs(offsetMs)
      const isOn = this.#isOn(`skew ${id}`, {
        isMet: awayMs > CLOCK_SKEW_MS_MAX,
        isGone: awayMs <= CLOCK_SKEW_OVER_MS,
      })
      if (!isOn) this.#alarms.clear('CLOCK_SKEW', id)
      else if (awayMs > CLOCK_SKEW_OVER_MS) {
        this.#alarms.raise('CLOCK_SKEW', { member: id, offsetMs })
      }
    }
    this.#forgetClocks(new Set(members.map(({ id }) => id)))
  }

  /** Updates the alarm about log time. It stays unchanged while too few clocks are known. */
  #lookAtLogTime(
    record: ConfigurationRecord,
    members: readonly MemberView[],
    logTimeMs: number,
  ): void {
    const clockMs = quorumClockMs(record, members, this.#clock.nowMs())
    if (clockMs === null) return
    const aheadMs = logTimeMs - clockMs
    const isMet = aheadMs > LOG_TIME_AHEAD_MS_MAX
    const isGone = aheadMs <= CLOCK_SKEW_MS_MAX
    if (!this.#isOn('log time', { isMet, isGone })) this.#alarms.clear('LOG_TIME_AHEAD')
    else if (!isGone) this.#alarms.raise('LOG_TIME_AHEAD', { aheadMs })
  }

  /** Clears the alarms CLOCK_SKEW of former members. */
  #forgetClocks(members: ReadonlySet<NodeId>): void {
    for (const key of this.#conditions.keys()) {
      const id = key.startsWith('skew ') ? key.slice('skew '.length) : null
      if (id === null || members.has(id)) continue
      this.#conditions.delete(key)
      this.#alarms.clear('CLOCK_SKEW', id)
    }
  }

  #lookAtTolerance(record: ConfigurationRecord, members: readonly MemberView[]): void {
    const connected = new Set(members.filter((one) => one.connected).map(({ id }) => id))
    const { voters, spare, nextRisk } = configurationFailureTolerance(record, (id) =>
      connected.has(id),
    )
    if (voters < 3) {
      // Fewer than three voters never tolerate a failure. An alarm would be permanent, so none is
      // raised.
      this.#conditions.delete('spare')
      this.#alarms.clear('NO_QUORUM_SPARE')
      return
    }
    const isMet = spare <= 0
    if (!this.#isOn('spare', { isMet, isGone: !isMet })) {
      this.#alarms.clear('NO_QUORUM_SPARE')
    } else if (isMet) {
      const unreachable = members.filter((one) => one.voter && !one.connected).map(({ id }) => id)
      this.#alarms.raise('NO_QUORUM_SPARE', { nextRisk, unreachable })
    }
  }

  /**
   * Updates a condition.
   * @returns whether it holds: it begins after `isMet` has been true for `HOLDS_MS`, and ends after
   * `isGone` has been true for `OVER_MS`.
   */
  #isOn(key: string, { isMet, isGone }: { isMet: boolean; isGone: boolean }): boolean {
    const nowMs = this.#clock.monotonicMs()
    const { isOn, sinceMs } = this.#conditions.get(key) ?? { isOn: false, sinceMs: null }
    if (isOn ? !isGone : !isMet) {
      if (isOn) this.#conditions.set(key, { isOn, sinceMs: null })
      else this.#conditions.delete(key)
      return isOn
    }
    const turnsMs = sinceMs ?? nowMs
    const hasTurned = nowMs - turnsMs >= (isOn ? OVER_MS : HOLDS_MS)
    this.#conditions.set(
      key,
      hasTurned ? { isOn: !isOn, sinceMs: null } : { isOn, sinceMs: turnsMs },
    )
    return hasTurned ? !isOn : isOn
  }
}

interface Condition {
  readonly isOn: boolean
  /** Time since which the observations contradict `isOn`; null if they agree with `isOn`. */
  readonly sinceMs: number | null
}
