import type { KindName } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'
import { SortedIds } from '../records/sorted-ids.ts'
import type { State, DerivedIndex } from '../records/state.ts'

/** An expiry of access that has not been applied yet. */
export interface PendingExpiry {
  readonly atMs: number
  readonly kind: 'servicePolicy' | 'identity'
  readonly id: string
  /** Role attribute of an identity; '' for a policy. */
  readonly attribute: string
}

/** Digits of the latest time that RFC 3339 can write, in ms. */
const TIME_DIGITS = 15
/** Kinds whose records can contain expiries of access. */
export const kindsWithAccessExpiry: ReadonlySet<KindName> = new Set(['servicePolicy', 'identity'])

function timeKey(atMs: number): string {
  return String(Math.max(0, Math.floor(atMs))).padStart(TIME_DIGITS, '0')
}

/** A position in the order of expiries: after all expiries at this time or earlier. */
export function expirySortKeyAfter(atMs: number): string {
  return `${timeKey(atMs)}~`
}

/** The position of an expiry. Expiries are ordered by time, then by record and attribute. */
export function expirySortKey({ atMs, kind, id, attribute }: PendingExpiry): string {
  return `${timeKey(atMs)}${JSON.stringify([kind, id, attribute])}`
}

function endAt(position: string): PendingExpiry {
  const [kind, id, attribute] = JSON.parse(position.slice(TIME_DIGITS)) as [
    PendingExpiry['kind'],
    string,
    string,
  ]
  return { atMs: Number(position.slice(0, TIME_DIGITS)), kind, id, attribute }
}

/** Expiries of a record that have not been applied yet. */
export function* pendingExpiries(kind: KindName, record: EntityRecord): Iterable<PendingExpiry> {
  const { id } = record
  if (kind === 'servicePolicy') {
    const atMs = record['expiresAt']
    if (typeof atMs === 'number' && record['isEnded'] !== true) {
      yield { atMs, kind, id, attribute: '' }
    }
    return
  }
  if (kind !== 'identity') return
  const ends = Object.entries((record['roleAttributesExpireAt'] ?? {}) as Record<string, unknown>)
  if (ends.length === 0) return
  const held = new Set(record['roleAttributes'] as readonly string[])
  for (const [attribute, end] of ends) {
    const atMs = dateTimeMs(String(end))
    if (atMs !== null && held.has(attribute)) yield { atMs, kind, id, attribute }
  }
}

/**
 * The expiries of service policies and role attributes that have not been applied yet, in order.
 * They are derived from the records alone and are not part of the state.
 */
export class PendingExpiryIndex implements DerivedIndex {
  readonly #state: State
  #ends = new SortedIds()

  constructor(state: State) {
    this.#state = state
  }

  note(kind: KindName, id: string, before: EntityRecord | undefined): void {
    const after = this.#state.get(kind, id)
    if (before !== undefined) {
      for (const end of pendingExpiries(kind, before)) this.#ends.delete(expirySortKey(end))
    }
    if (after === undefined) return
    for (const end of pendingExpiries(kind, after)) this.#ends.add(expirySortKey(end))
  }

  rebuild(): void {
    const found: string[] = []
    for (const kind of kindsWithAccessExpiry) {
      for (const { record } of this.#state.table(kind).rows.values()) {
        for (const end of pendingExpiries(kind, record)) found.push(expirySortKey(end))
      }
    }
    this.#ends = new SortedIds()
    for (const position of found) this.#ends.add(position)
  }

  /** At most `max` expiries after position `after`, up to and including position `until`. */
  between(after: string, until: string, max: number): readonly PendingExpiry[] {
    const start = this.#ends.rank(`${after}\0`)
    return this.#ends
      .slice(start, max)
      .filter((position) => position <= until)
      .map(endAt)
  }

  /** The first expiry after a position; null: none. */
  firstAfter(position: string): PendingExpiry | null {
    const [found] = this.#ends.slice(this.#ends.rank(`${position}\0`), 1)
    return found === undefined ? null : endAt(found)
  }
}
