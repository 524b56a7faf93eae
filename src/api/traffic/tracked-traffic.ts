import { RowRingBuffer } from '../metrics/row-ring-buffer.ts'
import {
  type RecordTraffic,
  type TrafficCounterName,
  type TrafficSeries,
  type TrafficSpan,
  type TrafficTotals,
  trafficCounterNames,
  trafficSpans,
} from '../../ports/traffic.ts'

interface Interval {
  readonly fromMs: number
  readonly toMs: number
}

/** Number of least recently used records among which a record to evict is chosen. */
const CANDIDATES = 16
/**
 * Bytes that count as much as one addition to any other figure, when a record to evict is chosen.
 */
const BYTES_PER_EVENT = 1024

const figureAt: ReadonlyMap<TrafficCounterName, number> = new Map(
  trafficCounterNames.map((figure, at) => [figure, at]),
)

/** Counts of one record over time, or of all records without separate counts. */
class TrafficRings {
  readonly #rings: Readonly<Record<TrafficSpan, RowRingBuffer>> = {
    hour: new RowRingBuffer(trafficSpans.hour.periods, trafficCounterNames.length),
    day: new RowRingBuffer(trafficSpans.day.periods, trafficCounterNames.length),
  }
  /**
   * Amount of traffic since separate counting began; of the candidates, the record with the
   * smallest amount is evicted.
   */
  use = 0
  usedMs = 0

  get bytes(): number {
    return this.#rings.hour.bytes + this.#rings.day.bytes
  }

  /**
   * Distributes an amount over the periods of an interval, in proportion to the time in each
   * period.
   */
  add(figure: TrafficCounterName, amount: number, { fromMs, toMs }: Interval): void {
    const at = figureAt.get(figure) ?? 0
    this.use += figure.endsWith('Bytes') ? amount : BYTES_PER_EVENT
    this.usedMs = toMs
    for (const [span, { periodMs }] of spans) {
      const ring = this.#rings[span]
      const last = Math.floor(toMs / periodMs)
      for (let period = Math.floor(fromMs / periodMs); period < last; period += 1) {
        const withinMs = (period + 1) * periodMs - Math.max(fromMs, period * periodMs)
        ring.add(period, at, (amount * withinMs) / (toMs - fromMs))
      }
      const withinMs = toMs - Math.max(fromMs, last * periodMs)
      ring.add(last, at, toMs === fromMs ? amount : (amount * withinMs) / (toMs - fromMs))
    }
  }

  clear(): void {
    for (const [span] of spans) this.#rings[span].clear()
    this.use = 0
  }

  addAll(other: TrafficRings): void {
    for (const [span] of spans) this.#rings[span].addAll(other.#rings[span])
  }

  series(nowMs: number): TrafficSeries {
    return this.#read(nowMs, (ring, first, last) => ring.rows(first, last))
  }

  totals(nowMs: number): TrafficSeries {
    return this.#read(nowMs, (ring, first, last) => ring.sums(first, last))
  }

  #read(
    nowMs: number,
    read: (ring: RowRingBuffer, first: number, last: number) => readonly number[],
  ): TrafficSeries {
    const of = (span: TrafficSpan): readonly number[] => {
      const { periodMs, periods } = trafficSpans[span]
      const last = Math.floor(nowMs / periodMs)
      return read(this.#rings[span], last - periods + 1, last)
    }
    return { hour: of('hour'), day: of('day') }
  }
}

const spans = Object.entries(trafficSpans) as readonly (readonly [
  TrafficSpan,
  (typeof trafficSpans)[TrafficSpan],
])[]

/**
 * Traffic of a limited number of records of one kind. The traffic of unknown and evicted records is
 * added up as `other`.
 */
export class TrackedTraffic {
  readonly #recordsMax: number
  readonly #isKnown: (id: string) => boolean
  /** Counts by record id; the record that was unused for the longest time is first. */
  readonly #records = new Map<string, TrafficRings>()
  readonly #other = new TrafficRings()

  constructor(recordsMax: number, isKnown: (id: string) => boolean) {
    this.#recordsMax = recordsMax
    this.#isKnown = isKnown
  }

  get bytes(): number {
    return this.#other.bytes * (this.#records.size + 1)
  }

  add(id: string, figure: TrafficCounterName, amount: number, interval: Interval): void {
    this.#ringsOf(id, interval.toMs).add(figure, amount, interval)
  }

  totals(nowMs: number): TrafficTotals {
    const rows = Array.from(this.#records, ([id, rings]) => ({
      id,
      figures: rings.totals(nowMs),
    }))
    return { rows, other: this.#other.totals(nowMs) }
  }

  series(ids: readonly string[], nowMs: number): readonly RecordTraffic[] {
    return ids.flatMap((id) => {
      const rings = this.#records.get(id)
      return rings === undefined ? [] : [{ id, figures: rings.series(nowMs) }]
    })
  }

  #ringsOf(id: string, nowMs: number): TrafficRings {
    const known = this.#records.get(id)
    // Counts unknown ids together: routers send the ids of services, so otherwise one router could
    // evict all services.
    // @guard traffic-of-others--unknown
    if (known === undefined && !this.#isKnown(id)) return this.#other
    this.#records.delete(id)
    // @guard traffic-of-others--memory
    const isFull = known === undefined && this.#records.size >= this.#recordsMax
    const rings = known ?? (isFull ? this.#evict(nowMs) : new TrafficRings())
    this.#records.set(id, rings)
    return rings
  }

  /**
   * Evicts a record.
   * @returns its counts object, emptied, for reuse by another record.
   */
  #evict(nowMs: number): TrafficRings {
    let evicted: readonly [string, TrafficRings] | null = null
    let seen = 0
    for (const entry of this.#records) {
      const [, rings] = entry
      if (evicted === null || rings.use < evicted[1].use) evicted = entry
      seen += 1
      if (seen >= CANDIDATES) break
    }
    if (evicted === null) return new TrafficRings()
    const [id, rings] = evicted
    this.#records.delete(id)
    const { periodMs, periods } = trafficSpans.day
    if (nowMs - rings.usedMs < periodMs * periods) this.#other.addAll(rings)
    rings.clear()
    return rings
  }
}
