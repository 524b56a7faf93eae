import { migrateLimits } from './limits.ts'

/**
 * `changed`: migrated with another value, or omitted without any loss. `decide`: migrated, but an
 * operator must check or correct it. `lost`: not migrated.
 */
export const migrationFindingKinds = ['changed', 'decide', 'lost'] as const
export type MigrationFindingKind = (typeof migrationFindingKinds)[number]

/**
 * A difference between an OpenZiti record and the migrated record, or between the old and the new
 * configuration of a controller.
 */
export interface MigrationFinding {
  readonly kind: MigrationFindingKind
  readonly store: string
  /**
   * Id of the record, or id or path of a configuration; empty if the finding is about the whole
   * store.
   */
  readonly id: string
  /** Name of the record; empty if it has none. */
  readonly name: string
  /** Name of the field; empty if the finding is about the whole record. */
  readonly field: string
  /** Reason of the difference, one clause. */
  readonly reason: string
}

/** The store, record and field that a finding is about. */
export type MigrationFindingTarget = Pick<MigrationFinding, 'store' | 'id' | 'field'> &
  Partial<Pick<MigrationFinding, 'name'>>

/** Results of migrating one store of the OpenZiti database, or the configurations. */
export interface StoreReport {
  readonly store: string
  /** Number of the store's records in the database. */
  readonly records: number
  /** Number of migrated records. */
  readonly carried: number
  /** Number of findings of each kind, including findings that are not listed. */
  readonly counts: Readonly<Record<MigrationFindingKind, number>>
  readonly findings: readonly MigrationFinding[]
}

interface StoreCounts {
  records: number
  carried: number
  readonly counts: Record<MigrationFindingKind, number>
  readonly findings: MigrationFinding[]
}

/**
 * Collects the outcome for each record. The report uses a limited amount of memory for a database
 * of any size.
 */
export class MigrationReport {
  /**
   * `issued`: certificates of routers and identities that an authority in the configurations
   * issued. `foreign`: certificates that the network should have issued, but whose issuer is not
   * among these authorities.
   */
  readonly certificates = { issued: 0, foreign: 0 }
  readonly #stores = new Map<string, StoreCounts>()

  countRecord(store: string): void {
    this.#store(store).records += 1
  }

  /** @param count negative if a migrated record is removed again. */
  countCarried(store: string, count = 1): void {
    this.#store(store).carried += count
  }

  note(kind: MigrationFindingKind, place: MigrationFindingTarget, reason: string): void {
    const store = this.#store(place.store)
    store.counts[kind] += 1
    if (store.counts[kind] > migrateLimits.findingsShownMax) return
    const { id, name = '', field } = place
    store.findings.push({ kind, store: place.store, id, name, field, reason })
  }

  /** Number of findings of this kind in all stores. */
  count(kind: MigrationFindingKind): number {
    return [...this.#stores.values()].reduce((sum, { counts }) => sum + counts[kind], 0)
  }

  get stores(): StoreReport[] {
    return [...this.#stores]
      .map(([store, counts]) => ({ store, ...counts }))
      .sort((a, b) => (a.store < b.store ? -1 : 1))
  }

  #store(name: string): StoreCounts {
    const known = this.#stores.get(name)
    if (known !== undefined) return known
    const counts = { changed: 0, decide: 0, lost: 0 }
    const made: StoreCounts = { records: 0, carried: 0, counts, findings: [] }
    this.#stores.set(name, made)
    return made
  }
}
