import type { EntityRecord } from '../lib/entity-record.ts'
import type { EntityOf } from './define.ts'
import type { KindName } from './kind-names.ts'
import type { kinds } from './registry.ts'

export type { KindName }

type KindRecords = { readonly [K in KindName]: EntityOf<(typeof kinds)[K]> }

/**
 * The type of a record of the kind, as its descriptor says: `RecordOf<'mfa'>`. Where any kind may
 * be meant, fields are read by their names.
 */
export type RecordOf<K extends KindName> = KindName extends K ? EntityRecord : KindRecords[K]

/** The name of a stored field of the kind. */
export type FieldName<K extends KindName> = Extract<keyof RecordOf<K>, string>
