import type { EntityRecord } from '../lib/entity-record.ts'
import type { EntityOf } from './define-entity.ts'
import type { KindName } from './kind-names.ts'
import type { entityByKind } from './registry.ts'

export type { KindName }

type KindRecords = { readonly [K in KindName]: EntityOf<(typeof entityByKind)[K]> }

/**
 * The record type of a kind, derived from the kind's descriptor: `RecordOf<'mfa'>`. If the compiler
 * does not know which kind it is, the type has untyped fields that are read by name.
 */
export type RecordOf<K extends KindName> = KindName extends K ? EntityRecord : KindRecords[K]

/** The name of one of the kind's stored fields. */
export type FieldName<K extends KindName> = Extract<keyof RecordOf<K>, string>
