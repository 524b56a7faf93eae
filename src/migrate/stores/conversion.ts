import { precedences } from '../../entities/parts/terminator-fields.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import type { BaseFields } from '../../lib/entity-record.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { Certificate } from '../../pki/certificate.ts'
import type { FactorSecrets } from '../../pki/secrets/sealed-factor.ts'
import type { MigrationReport } from '../report.ts'
import type { FieldRows } from './field-rows.ts'
import type { StoredRecord } from './stored-record.ts'

/** Schema versions of the databases that are read: OpenZiti 1.5 to 2.1. */
export const SCHEMA_VERSION_MIN = 37
export const SCHEMA_VERSION_MAX = 48
/** Services have no section `edge` any more. */
export const FLAT_SERVICES_VERSION = 47
/** OpenZiti 1.7.2 and 2.0: the first with claims as JSON pointers, from 2.0. */
export const CLAIM_POINTERS_VERSION = 44

type OwnFields<K extends KindName> = Partial<Omit<RecordOf<K>, keyof BaseFields>>

/** Target of a migration, and the facts that records need about each other. */
export interface Conversion {
  readonly version: number
  readonly nowMs: number
  readonly report: MigrationReport
  /** Third-party CAs by id. */
  readonly authorities: Map<string, Certificate>
  readonly fabricServices: Set<string>
  /** Certificates of routers that the database lacks, by id of the router. */
  readonly routerCertificates: ReadonlyMap<string, string>
  /** Hosts of the controllers, in normalized spelling. */
  readonly controllerHosts: ReadonlySet<string>
  /** Fields of an encrypted second factor. */
  sealFactor(identityId: string, factor: FactorSecrets): Readonly<Record<string, Json>>
  /** Writes the record of a stored one, with its id, times and tags. */
  put<K extends KindName>(kind: K, from: StoredRecord, fields: OwnFields<K>): void
  /** Writes a record that OpenZiti stores as a field of another record. */
  putOther<K extends KindName>(kind: K, from: StoredRecord, id: string, fields: OwnFields<K>): void
}

/** A store of OpenZiti's database. */
export interface StoreTable {
  readonly store: string
  /** null: no record is carried. */
  readonly kind: KindName | null
  /** Reason why no record is carried; '' if they are. */
  readonly why: string
  readonly rows: FieldRows
  readonly convert: (record: StoredRecord, conversion: Conversion) => void
}

/** Records of this store are not carried, and nothing is lost by it. */
export function leftOut(store: string, why: string): StoreTable {
  return { store, kind: null, why, rows: {}, convert: () => undefined }
}

/** OpenZiti stores the place in this list. */
export function precedenceOf(record: StoredRecord, name: string, index: Json | undefined) {
  const found = precedences[Number(index ?? 0)]
  if (found === undefined) record.note('changed', name, 'an unknown precedence became default')
  return found ?? 'default'
}

/** The one of `values` that the field has, or the first one; a finding for any other text. */
export function choiceOf<const T extends string>(
  record: StoredRecord,
  name: string,
  values: readonly [T, ...T[]],
): T {
  const isUnset = (record.text(name) ?? '') === ''
  return (isUnset ? null : knownChoiceOf(record, name, values)) ?? values[0]
}

/** The one of `values` that the field has; null and a finding for any other text. */
export function knownChoiceOf<const T extends string>(
  record: StoredRecord,
  name: string,
  values: readonly T[],
): T | null {
  const text = record.text(name)
  const found = values.find((one) => one === text)
  if (found === undefined) record.note('lost', name, `it is none of ${values.join(', ')}`)
  return found ?? null
}
