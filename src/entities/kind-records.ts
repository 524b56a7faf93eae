import type { EntityRecord } from '../lib/entity-record.ts'
import type { EntityOf } from './define.ts'
import type { KindName } from './kind-names.ts'
import type { kinds } from './registry.ts'

export type { KindName }

type KindRecords = { readonly [K in KindName]: EntityOf<(typeof kinds)[K]> }

/**
 * The record type of a kind, derived from its descriptor: `RecordOf<'mfa'>`. For an unknown kind,
 * it is a record whose fields are read by name.
 */
export type RecordOf<K extends KindName> = KindName extends K ? EntityRecord : KindRecords[K]

/** The name of a stored field of the kind. */
export type FieldName<K extends KindName> = Extract<keyof RecordOf<K>, string>
