import { randomBytes } from 'node:crypto'

import type { KindName, RecordOf } from '../entities/kind-records.ts'
import { findEntity } from '../entities/registry.ts'
import { commonSeedRecords } from '../fsm/seed/seed.ts'
import { State } from '../fsm/records/state.ts'
import { isOwnedByPrivileged } from '../fsm/apply/actor-rights.ts'
import type { BaseRecordFields } from '../lib/entity-record.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { Certificate } from '../pki/certificate.ts'
import { type FactorSecrets, encryptFactorSecrets } from '../pki/secrets/factor-secrets.ts'
import { FEATURE_LEVEL } from '../ports/feature-level.ts'
import { findRefusedFields } from './refused-fields.ts'
import type { OpenZitiDatabase } from './database.ts'
import { MigrationFault } from './fault.ts'
import { removeDanglingReferences } from './references.ts'
import type { MigrationReport } from './report.ts'
import { type Conversion, ID_CHARACTERS_MAX, type StoreTable } from './stores/conversion.ts'
import type { StoredFieldRules } from './stores/stored-field-rules.ts'
import { StoredRecord } from './stores/stored-record.ts'
import { nonStoreBuckets, storeTables } from './stores/tables.ts'

const FACTOR_KEY_VERSION = 1
const REVISION = 1
/**
 * Maximum characters of encoded changes in the state; small, because the migration does not need
 * them.
 */
const DIRTY_CHARACTERS_MAX = 64 * 1024

export interface ConversionOptions {
  readonly nowMs: number
  readonly clusterId: string
  /** Key that encrypts second factors; 32 bytes. */
  readonly factorKey: Uint8Array
  readonly routerCertificates: ReadonlyMap<string, string>
  readonly controllerHosts: ReadonlySet<string>
  /** CA certificates that the new network trusts. */
  readonly networkAuthorities: readonly Certificate[]
  readonly report: MigrationReport
}

/**
 * Converts the records of a database to a state, and reports which records and fields are changed
 * or lost, or need a decision.
 * @throws {MigrationFault} DAMAGED or TOO_LARGE.
 */
export function convertDatabase(database: OpenZitiDatabase, options: ConversionOptions): State {
  const conversion = new NetworkConversion(database.version, options)
  noteUnknownBuckets(database, options.report)
  conversion.state.wholesale(() => {
    for (const table of storeTables) convertStore(database, table, conversion)
    conversion.finish()
  })
  return conversion.state
}

/** Reads and counts the records of one store, and reports those that cannot be read. */
export function* readStoreRecords(
  database: OpenZitiDatabase,
  table: StoreTable,
  report: MigrationReport,
): Generator<StoredRecord> {
  const { store } = table
  const isSkipped = skipsLinks(table.rows)
  for (const { id, isText, entries } of database.records(store, isSkipped)) {
    report.countRecord(store)
    const place = { store, id, field: '' }
    if (entries instanceof MigrationFault) report.note('lost', place, entries.message)
    else if (!isText) report.note('lost', place, 'its id is no text')
    else if (id.length > ID_CHARACTERS_MAX) {
      report.note('lost', place, `its id has more than ${ID_CHARACTERS_MAX} characters`)
    } else yield new StoredRecord({ store, id, prefix: '', report }, entries, table.rows)
  }
}

function convertStore(
  database: OpenZitiDatabase,
  table: StoreTable,
  conversion: NetworkConversion,
): void {
  const { store, kind, why } = table
  const { report } = conversion
  if (kind === null) {
    const count = database.count('ziti', store)
    for (let at = 0; at < count; at += 1) report.countRecord(store)
    if (count > 0) report.note('changed', { store, id: '', field: '' }, why)
    return
  }
  for (const record of readStoreRecords(database, table, report)) table.convert(record, conversion)
}

/**
 * Selects the paths of links, which are not read. The path of a section with a key contains the
 * key, but the field rules do not.
 */
function skipsLinks(rows: StoredFieldRules): (path: readonly string[]) => boolean {
  return (path) => {
    let fields: StoredFieldRules | undefined = rows
    for (const [at, name] of path.entries()) {
      const row: StoredFieldRules[string] | undefined = Object.hasOwn(fields, name)
        ? fields[name]
        : undefined
      if (row === undefined) return false
      if (row.type === 'links') return at === path.length - 1
      fields = row.fields
    }
    return false
  }
}

function noteUnknownBuckets(database: OpenZitiDatabase, report: MigrationReport): void {
  const known = new Set([...nonStoreBuckets, ...storeTables.map(({ store }) => `ziti/${store}`)])
  for (const name of database.bucketNames) {
    if (known.has(name) || database.count(...name.split('/')) === 0) continue
    report.note('lost', { store: name, id: '', field: '' }, 'this store is unknown')
  }
}

class NetworkConversion implements Conversion {
  readonly version: number
  readonly nowMs: number
  readonly report: MigrationReport
  readonly authorities = new Map<string, Certificate>()
  readonly fabricServices = new Set<string>()
  readonly routerCertificates: ReadonlyMap<string, string>
  readonly controllerHosts: ReadonlySet<string>
  readonly networkAuthorities: readonly Certificate[]
  readonly state = new State()
  readonly #options: ConversionOptions
  readonly #storesOfKinds = new Map(storeTables.map(({ store, kind }) => [kind, store]))

  constructor(version: number, options: ConversionOptions) {
    this.version = version
    this.nowMs = options.nowMs
    this.report = options.report
    this.routerCertificates = options.routerCertificates
    this.controllerHosts = options.controllerHosts
    this.networkAuthorities = options.networkAuthorities
    this.#options = options
    this.state.featureLevel = FEATURE_LEVEL
  }

  put<K extends KindName>(
    kind: K,
    from: StoredRecord,
    fields: Partial<Omit<RecordOf<K>, keyof BaseRecordFields>>,
  ): void {
    this.putOther(kind, from, from.id, fields)
  }

  putOther<K extends KindName>(
    kind: K,
    from: StoredRecord,
    id: string,
    fields: Partial<Omit<RecordOf<K>, keyof BaseRecordFields>>,
  ): void {
    const own = fields as JsonObject
    if (own['name'] === '') {
      from.note('lost', 'name', 'the record has no name')
      return
    }
    if (this.state.inTable(kind, id) !== undefined) {
      from.note('lost', '', `there is another ${kind} ${id}`)
      return
    }
    const isMain = this.#storesOfKinds.get(kind) === from.store
    const made = { tags: isMain ? from.map('tags') : {}, ...own }
    for (const { field, reason } of findRefusedFields(findEntity(kind), made)) {
      from.note(
        'decide',
        field,
        `${reason}; changes of this record are refused until it is corrected`,
      )
    }
    const unique = this.#withUniqueValues(kind, from, made)
    if (unique === null) return
    const { createdAt, updatedAt } = this.#timesOf(from)
    this.state.put(kind, { ...unique, id, createdAt, updatedAt, revision: REVISION })
    // Discards the encoded changes of the state, because a backup encodes the records themselves.
    if (this.state.dirtyCharacters >= DIRTY_CHARACTERS_MAX) this.state.takeDirty()
    if (isMain) this.report.countCarried(from.store)
  }

  sealFactor(identityId: string, factor: FactorSecrets): Readonly<Record<string, Json>> {
    const [secretId, codesId] = [newFactorId(), newFactorId()]
    const { clusterId, factorKey } = this.#options
    const context = { clusterId, identityId, secretId, codesId }
    const sealed = encryptFactorSecrets(factorKey, factor, context)
    return { secretId, codesId, sealed, keyVersion: FACTOR_KEY_VERSION, lastStep: 0, usedCodes: [] }
  }

  /** Adds the records that every network has, and removes references to missing records. */
  finish(): void {
    for (const { entity, id, json } of commonSeedRecords()) {
      const kind = findEntity(entity).name
      if (this.state.inTable(kind, id) !== undefined) continue
      const fields = JSON.parse(new TextDecoder().decode(json)) as JsonObject
      const name = this.#freeName(kind, id, String(fields['name']))
      const times = { createdAt: this.nowMs, updatedAt: this.nowMs, revision: REVISION }
      this.state.put(kind, { ...fields, name, id, ...times })
    }
    removeDanglingReferences({
      state: this.state,
      report: this.report,
      storeOf: (kind) => this.#storesOfKinds.get(kind) ?? null,
    })
    this.#noteWithdrawnEnrollments()
  }

  /** Reports the unused enrollment tokens that become invalid when the backup is restored. */
  #noteWithdrawnEnrollments(): void {
    for (const { record } of this.state.table('enrollment').rows.values()) {
      if (!isOwnedByPrivileged(this.state, 'enrollment', record)) continue
      const owner = record.identityId === '' ? 'router has permitted names' : 'identity has rights'
      const reason = `the restore withdraws it, because its ${owner}; create a new enrollment after the move`
      this.report.note('decide', { store: 'enrollments', id: record.id, field: 'token' }, reason)
    }
  }

  /**
   * The name for a record that every network has; with a suffix if another record already has that
   * name.
   */
  #freeName(kind: KindName, id: string, name: string): string {
    const other = this.#ownerOf(kind, 'name', name)
    if (other === undefined) return name
    const renamed = `${name} (${id})`
    const place = { store: this.#storesOfKinds.get(kind) ?? kind, id: other, field: 'name' }
    this.report.note(
      'changed',
      place,
      `the ${kind} ${id} of every network has this name, so it became ${renamed}`,
    )
    return renamed
  }

  #timesOf(from: StoredRecord): { createdAt: number; updatedAt: number } {
    const name = from.isKnown('createdAt') ? 'createdAt' : 'issuedAt'
    const createdAt = from.time(name) ?? this.nowMs
    return {
      createdAt,
      updatedAt: from.isKnown('updatedAt') ? (from.time('updatedAt') ?? createdAt) : createdAt,
    }
  }

  /**
   * Makes unique fields unique: OpenZiti has no two records with the same value in such a field,
   * but a damaged database may. A name gets a suffix. The result is null, and the record is not
   * migrated, if another record has the name with the suffix, or if the field is not the name.
   */
  #withUniqueValues(kind: KindName, from: StoredRecord, fields: JsonObject): JsonObject | null {
    const made: Record<string, Json> = { ...fields }
    for (const [name, field] of Object.entries(findEntity(kind).fields)) {
      const value = made[name]
      if (field.unique === null || typeof value !== 'string' || value === '') continue
      const other = this.#ownerOf(kind, name, value)
      if (other === undefined) continue
      const renamed = `${value} (${from.id})`
      if (name !== 'name' || this.#ownerOf(kind, name, renamed) !== undefined) {
        from.note('lost', name, `${other} has the same value`)
        return null
      }
      from.note('changed', name, `${other} has the same name, so it became ${renamed}`)
      made[name] = renamed
    }
    return made
  }

  /** Id of the record that has this value in a unique field. */
  #ownerOf(kind: KindName, field: string, value: string): string | undefined {
    return this.state.table(kind).indexes.owner(field, value)
  }
}

function newFactorId(): string {
  return randomBytes(12).toString('base64url')
}
