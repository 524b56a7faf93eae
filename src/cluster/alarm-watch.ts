import type { Configuration as ConfigurationRecord } from '../../proto/gen/membership_pb.ts'
import type { Clock } from '../lib/clock.ts'
import type { MemberView } from '../ports/cluster-view.ts'
import type { NodeId, Position } from '../raft/types.ts'
import type { Alarms } from './alarms.ts'
import { toleranceNow } from './failure-tolerance.ts'

/** Log time is never stamped further ahead of the median clock than this. */
const CLOCK_SKEW_MS_MAX = 2000
/** A message that was long on its way looks like a clock that is behind, so one alone proves nothing. */
const HOLDS_MS = 5000
/** Room in which an operator can still act before the guard of the log (`log.lowSpaceBytes`) stops the controller. */
export const LOW_SPACE_BYTES = 512 * 1024 * 1024
/** An alarm of space is over only with so much more of it, or every segment that is made and dropped would end it. */
const LOW_SPACE_OVER = 1.25
const MIB = 1024 * 1024

/** Raises and clears what can be seen from the members and the disk. A condition counts once it has held for 5 s. */
export class AlarmWatch {
  readonly #alarms: Alarms
  readonly #clock: Clock
  readonly #lowSpaceBytes: number
  readonly #sinceMs = new Map<string, number>()
  readonly #skewed = new Set<NodeId>()

  constructor(alarms: Alarms, clock: Clock, lowSpaceBytes = LOW_SPACE_BYTES) {
    this.#alarms = alarms
    this.#clock = clock
    this.#lowSpaceBytes = lowSpaceBytes
  }

  /** @param freeBytes where the log is; null when it can not be told. */
  look(
    record: ConfigurationRecord,
    members: readonly MemberView[],
    freeBytes: number | null,
  ): void {
    this.#lookAtClocks(members)
    this.#lookAtTolerance(record, members)
    if (freeBytes !== null && freeBytes < this.#lowSpaceBytes) {
      const mib = Math.floor(freeBytes / MIB)
      const text = `the disk of the log has ${mib} MiB left; free some before this controller must stop`
      this.#alarms.raise('LOW_SPACE', text)
    } else if (freeBytes !== null && freeBytes >= this.#lowSpaceBytes * LOW_SPACE_OVER) {
      this.#alarms.clear('LOW_SPACE')
    }
  }

  /** @param owed what the log lacks of what was promised. */
  lookAtDebt(owed: Position | null): void {
    if (owed === null) {
      this.#alarms.clear('LOG_REPAIRING')
      return
    }
    const what =
      owed.index === Number.MAX_SAFE_INTEGER
        ? `what it held of term ${owed.term}`
        : `entries up to ${owed.index} of term ${owed.term}`
    const text = `the log was damaged and may lack ${what}; it is sent them by the other controllers, and does not lead until it has them`
    this.#alarms.raise('LOG_REPAIRING', text)
  }

  #lookAtClocks(members: readonly MemberView[]): void {
    const seen = new Set<NodeId>()
    for (const { id, vitals } of members) {
      const offsetMs = vitals?.clockOffsetMs ?? 0
      const isBeyond = Math.abs(offsetMs) > CLOCK_SKEW_MS_MAX
      if (this.#holds(`skew ${id}`, isBeyond)) {
        seen.add(id)
        const where = offsetMs > 0 ? 'ahead of' : 'behind'
        const seconds = (Math.abs(offsetMs) / 1000).toFixed(1)
        const text = `the clock of ${id} is ${seconds} s ${where} this one; set both by NTP`
        this.#alarms.raise('CLOCK_SKEW', text, id)
      }
    }
    for (const id of this.#skewed) if (!seen.has(id)) this.#alarms.clear('CLOCK_SKEW', id)
    this.#skewed.clear()
    for (const id of seen) this.#skewed.add(id)
  }

  #lookAtTolerance(record: ConfigurationRecord, members: readonly MemberView[]): void {
    const connected = new Set(members.filter((one) => one.connected).map(({ id }) => id))
    const { voters, spare, nextRisk } = toleranceNow(record, (id) => connected.has(id))
    if (this.#holds('spare', voters >= 3 && spare <= 0)) {
      const away = members.filter((one) => one.voter && !one.connected).map(({ id }) => id)
      const text = `${nextRisk}; not reached from here: ${away.join(', ')}`
      this.#alarms.raise('NO_QUORUM_SPARE', text)
    } else if (spare > 0 || voters < 3) {
      this.#alarms.clear('NO_QUORUM_SPARE')
    }
  }

  #holds(key: string, is: boolean): boolean {
    if (!is) {
      this.#sinceMs.delete(key)
      return false
    }
    const nowMs = this.#clock.monotonicMs()
    const sinceMs = this.#sinceMs.get(key) ?? nowMs
    this.#sinceMs.set(key, sinceMs)
    return nowMs - sinceMs >= HOLDS_MS
  }
}
