import { precedenceNames } from '../../entities/parts/terminator-fields.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import type { BaseRecordFields } from '../../lib/entity-record.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { Certificate } from '../../pki/certificate.ts'
import type { FactorSecrets } from '../../pki/secrets/factor-secrets.ts'
import type { MigrationReport } from '../report.ts'
import type { StoredFieldRules } from './stored-field-rules.ts'
import type { StoredRecord } from './stored-record.ts'

/** Schema versions of databases that can be migrated: OpenZiti 1.5 to 2.1. */
export const SCHEMA_VERSION_MIN = 37
export const SCHEMA_VERSION_MAX = 48
/** Schema version from which records of services have no section `edge`. */
export const FLAT_SERVICES_VERSION = 47
/**
 * Schema version of OpenZiti 1.7.2 and 2.0. Claims are JSON pointers from 2.0, so with this schema
 * version a claim may be a JSON pointer or a plain name.
 */
export const CLAIM_POINTERS_VERSION = 44

/** Maximum characters of a record's id in the database. */
export const ID_CHARACTERS_MAX = 128

type OwnFields<K extends KindName> = Partial<Omit<RecordOf<K>, keyof BaseRecordFields>>

/**
 * The target of a migration, and data about other records that the conversion of a record needs.
 */
export interface Conversion {
  readonly version: number
  readonly nowMs: number
  readonly report: MigrationReport
  /** Certificates of third-party CAs, by id of the CA. */
  readonly authorities: Map<string, Certificate>
  readonly fabricServices: Set<string>
  /** Router certificates that the database does not contain, by router id. */
  readonly routerCertificates: ReadonlyMap<string, string>
  /** Hosts of the controllers, normalized. */
  readonly controllerHosts: ReadonlySet<string>
  /** CA certificates that the new network trusts. */
  readonly networkAuthorities: readonly Certificate[]
  /**
   * Encrypts a second factor.
   * @returns the fields that store the encrypted factor.
   */
  sealFactor(identityId: string, factor: FactorSecrets): Readonly<Record<string, Json>>
  /**
   * Writes the migrated form of a record, with the record's id, times and tags. Reports the record
   * as lost instead if it has no name, or if another record has its id or one of its unique values;
   * only a name gets a suffix instead.
   */
  put<K extends KindName>(kind: K, from: StoredRecord, fields: OwnFields<K>): void
  /**
   * Like `put`, but with another id, and without tags if OpenZiti stores the data as a field of
   * another record.
   */
  putOther<K extends KindName>(kind: K, from: StoredRecord, id: string, fields: OwnFields<K>): void
}

/** A store of OpenZiti's database. */
export interface StoreTable {
  readonly store: string
  /** null if the records of this store are not migrated. */
  readonly kind: KindName | null
  /** Reason why the records are not migrated; '' if they are. */
  readonly why: string
  readonly rows: StoredFieldRules
  readonly convert: (record: StoredRecord, conversion: Conversion) => void
}

/** A store whose records are not migrated, for the reason `why`. */
export function unmigratedStore(store: string, why: string): StoreTable {
  return { store, kind: null, why, rows: {}, convert: () => undefined }
}

/**
 * The precedence of a terminator or identity, which OpenZiti stores as an index in the list
 * `precedenceNames`.
 */
export function readPrecedence(record: StoredRecord, name: string, index: Json | undefined) {
  const found = precedenceNames[Number(index ?? 0)]
  if (found === undefined) record.note('changed', name, 'an unknown precedence became default')
  return found ?? 'default'
}

/**
 * The value of the field if `values` contains it; otherwise the first of `values`, and a finding
 * unless the field is empty.
 */
export function readChoiceOrFirst<const T extends string>(
  record: StoredRecord,
  name: string,
  values: readonly [T, ...T[]],
): T {
  const isUnset = (record.text(name) ?? '') === ''
  return (isUnset ? null : readChoiceOrNull(record, name, values)) ?? values[0]
}

/** The value of the field if `values` contains it; otherwise null, and a finding. */
export function readChoiceOrNull<const T extends string>(
  record: StoredRecord,
  name: string,
  values: readonly T[],
): T | null {
  const text = record.text(name)
  const found = values.find((one) => one === text)
  if (found === undefined) record.note('lost', name, `it is none of ${values.join(', ')}`)
  return found ?? null
}
