import type { Clock } from '../../lib/clock.ts'
import { forwardLimits } from './limits.ts'
import type { CarriedCircuit } from './carried-circuits.ts'
import type {
  CircuitByteCounts,
  UsageCounterKind,
  UsageReport,
} from '../../channel/messages/reports.ts'

interface Bucket extends CircuitByteCounts {
  readonly bytes: Partial<Record<UsageCounterKind, number>>
  readonly sinceMs: number
}

const { usageCircuitsMax, usageCircuitsPerReportMax } = forwardLimits

/**
 * Byte counts of circuits since the last report, by circuit, side and direction. They remain stored
 * after the circuit ends, and while no controller is connected.
 */
export class CircuitUsageCounters {
  readonly #clock: Clock
  readonly #circuitsMax: number
  /** Counters by circuit ID, oldest first. */
  readonly #buckets = new Map<string, Bucket>()
  #reportedMs: number
  #lostBytes = 0
  /**
   * Called when the maximum number of circuits is reached, so that the current counts are reported.
   */
  onFull: () => void = () => undefined

  constructor(clock: Clock, circuitsMax: number = usageCircuitsMax) {
    this.#clock = clock
    this.#circuitsMax = circuitsMax
    this.#reportedMs = clock.monotonicMs()
  }

  /** Number of bytes since the start that were not counted, because the limit was reached. */
  get lostBytes(): number {
    return this.#lostBytes
  }

  count(circuit: CarriedCircuit, kind: UsageCounterKind, bytes: number): void {
    if (bytes === 0) return
    const bucket = this.#buckets.get(circuit.id) ?? this.#newBucket(circuit)
    if (bucket === null) this.#lostBytes += bytes
    else bucket.bytes[kind] = (bucket.bytes[kind] ?? 0) + bytes
  }

  /**
   * Reports all counted bytes, in as many reports as necessary.
   * @param send returns false if it could not send the report; the counts of this and all following
   * reports then stay.
   * @returns whether everything was sent.
   */
  sendUsage(send: (report: UsageReport) => boolean): boolean {
    const nowMs = this.#clock.monotonicMs()
    while (this.#buckets.size > 0) {
      const circuits = this.#oldest()
      if (!send(this.#reportOf(circuits, nowMs))) return false
      for (const { circuitId } of circuits) this.#buckets.delete(circuitId)
    }
    this.#reportedMs = nowMs
    return true
  }

  #oldest(): readonly Bucket[] {
    const oldest: Bucket[] = []
    for (const bucket of this.#buckets.values()) {
      if (oldest.length >= usageCircuitsPerReportMax) break
      oldest.push(bucket)
    }
    return oldest
  }

  #newBucket(circuit: CarriedCircuit): Bucket | null {
    if (this.#buckets.size >= this.#circuitsMax) this.onFull()
    if (this.#buckets.size >= this.#circuitsMax) return null
    const { id: circuitId, tags } = circuit
    const bucket = { circuitId, tags, bytes: {}, sinceMs: this.#reportedMs }
    this.#buckets.set(circuitId, bucket)
    return bucket
  }

  /**
   * The monotonic clock measures the interval, because the wall clock may be changed in between.
   */
  #reportOf(circuits: readonly Bucket[], nowMs: number): UsageReport {
    const sinceMs = circuits.reduce((first, one) => Math.min(first, one.sinceMs), nowMs)
    const lengthS = Math.max(1, Math.round((nowMs - sinceMs) / 1000))
    return { startS: Math.floor(this.#clock.nowMs() / 1000) - lengthS, lengthS, circuits }
  }
}
