import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { notBuiltYet } from '../lib/not-built-yet.ts'
import type { KindName } from './kind-names.ts'

/** Bounds on what one record may hold; a body is bounded beside that (1 MiB). */
export const fieldLimits = {
  nameCharactersMax: 512,
  textCharactersMax: 4096,
  attributesMax: 1024,
  attributeCharactersMax: 512,
  rolesMax: 16_384,
  referencesMax: 1024,
  tagsMax: 1024,
  /** Tags of one record, as canonical JSON. */
  tagsBytesMax: 8192,
} as const

export type FieldKind =
  | 'text'
  | 'choice'
  | 'boolean'
  | 'integer'
  | 'timestamp'
  | 'roleList'
  | 'attributes'
  | 'texts'
  | 'reference'
  | 'references'
  | 'map'
  | 'object'
  | 'objects'
  | 'computed'

/**
 * `create`: kept by replace and patch, which name it as ignored. `proposer`: derived by the
 * proposing controller, never taken from a body. `never`: written by the system alone.
 */
export type Settable = 'always' | 'create' | 'proposer' | 'never'

/** Fate of the holder when the record it names is deleted. */
export type OnDelete = 'refuse' | 'cascade' | 'strip'

export interface ReferenceRule {
  /** Descriptor name of the kind named. */
  readonly to: KindName
  readonly onDelete: OnDelete
  /** Feature level from which on a record that is named can not be deleted, as with `refuse`. */
  readonly refusedFrom?: number
  /** The rules of the kind also judge a record that does not exist; 404 otherwise. */
  readonly isJudgedByRules?: boolean
}

/** Source of a read-only value of the detail. */
export type ComputedSource =
  | { readonly from: 'constant'; readonly value: Json }
  /** {_links, entity, id, name} and perhaps `urlName` of the record that `by` names; or null. */
  | {
      readonly from: 'entityRef'
      readonly to: KindName
      readonly by: string
      readonly hasUrlName?: boolean
    }
  /** [{role, name}] of the role list `by`. */
  | { readonly from: 'rolesDisplay'; readonly to: KindName; readonly by: string }
  /** A stored field of the record of `to` that `by` names; its zero value when it names none. */
  | { readonly from: 'fieldOf'; readonly to: KindName; readonly by: string; readonly field: string }
  /** Whether a record of `of` names this one by its field `by`. */
  | { readonly from: 'isReferenced'; readonly of: KindName; readonly by: string }
  /** The stored field under another name; `otherwise` in place of null. */
  | { readonly from: 'field'; readonly field: string; readonly otherwise?: Json }
  /** The stored object or text; null in place of an empty one. */
  | { readonly from: 'fieldUnlessEmpty'; readonly field: string }
  /** Whether any of the boolean fields has the value beside it. */
  | { readonly from: 'anyFlag'; readonly of: Readonly<Record<string, boolean>> }
  /** `field` of the record of `of` that names this one by `by`; else `otherwise`, or null. */
  | {
      readonly from: 'fieldOfNaming'
      readonly of: KindName
      readonly by: string
      readonly field: string
      readonly otherwise?: Json
    }
  /** True from the time in `since` on, through the time in `until` (for good when that is null). */
  | { readonly from: 'isWithin'; readonly since: string; readonly until: string }
  /** How long wrong passwords keep that of an identity locked; null: it is not. */
  | { readonly from: 'passwordLock' }
  /** Per value of `key`, the fields named, of the records of `of` that name this one by `by`. */
  | {
      readonly from: 'byKey'
      readonly of: KindName
      readonly by: string
      readonly key: string
      readonly shows: Readonly<Record<string, readonly string[]>>
    }
  /** Live facts of a router: whether it is connected anywhere, and what it reported of itself. */
  | { readonly from: 'routerStatus'; readonly shows: RouterFact }
  /** Connection of an identity to an edge router, as a flag or by a word. */
  | { readonly from: 'routerConnection'; readonly shows: 'flag' | 'word' }
  /** Permissions of the caller on this record by its policies: [Bind, Dial], or [Invalid]. */
  | { readonly from: 'permissions' }
  /** One entry a policy that links the caller to this record. */
  | { readonly from: 'policyQueries' }
  /** Config type name to data, of the types asked for: configs in `by`, and those of the caller. */
  | { readonly from: 'configData'; readonly by: string }

export type RouterFact =
  | 'isOnline'
  | 'hostname'
  | 'supportedProtocols'
  | 'syncStatus'
  | 'version'
  | 'versionInfo'
  | 'versionInfoOrEmpty'
  | 'capabilities'
  | 'capabilitiesMask'

/**
 * Details that a field is shown in. `whenSet`: left out when null, empty or false. A condition:
 * where another field of the record has one of those values.
 */
export type Shown = 'always' | 'whenSet' | 'never' | Condition

export interface Condition {
  readonly field: string
  readonly is: readonly Json[]
}

/**
 * A field of a descriptor, without its type. `schema` describes a present, non-null value; in
 * requests null means absent, unless the field is required.
 */
export interface Field {
  readonly kind: FieldKind
  readonly settable: Settable
  readonly isRequired: boolean
  /**
   * Value when create or replace omit the field. Stored records omit it as well, so the zero of a
   * field that was ever stored must not change.
   */
  readonly zero: Json
  /** The feature level that added the field; below it, it is unset, and unknown in requests. */
  readonly since: number
  /** The feature level from which on it can be written, where that is later than `since`. */
  readonly writableSince: number
  readonly shown: Shown
  /** Whether events about a record show it; null: nothing is said, as its kind is not published. */
  readonly published: 'shown' | 'withheld' | null
  readonly schema: JsonObject
  readonly reference: ReferenceRule | null
  /** Refusal of a second record with the same value, which replaces {value}; null: not unique. */
  readonly unique: string | null
  /** Whether it refuses characters that a terminal acts on, from feature level 2 on. */
  readonly isPrintable: boolean
  /** Its name in refusals, when it is derived from another field of the body; null: its own. */
  readonly faultField: string | null
  /**
   * Merging of an object: a patch holds changed members only, also nested ones, and is merged into
   * the stored value, or into this where none is. null: a patch replaces it whole.
   */
  readonly mergedOnto: JsonObject | null
  /** Values that each element of `texts` must be one of; null for anything. */
  readonly values: readonly string[] | null
  /** Maximum bytes of canonical JSON of a map; null: bounded by the body alone. */
  readonly bytesMax: number | null
  readonly computed: ComputedSource | null
  /** Source that the detail shows in place of a stored field. */
  readonly shownAs: ComputedSource | null
}

/** Carries the stored TypeScript type to `EntityOf`. */
export interface FieldOf<T> extends Field {
  readonly stored?: T
}
export interface ComputedField extends Field {
  readonly kind: 'computed'
}

interface Rules {
  readonly settable?: Settable
  readonly required?: boolean
  readonly shown?: Shown
  readonly shownAs?: ComputedSource
  readonly since?: number
  readonly writableSince?: number
}

function field(kind: FieldKind, schema: JsonObject, zero: Json, rules: Rules): Field {
  return {
    kind,
    settable: rules.settable ?? 'always',
    isRequired: rules.required ?? false,
    zero,
    since: rules.since ?? 1,
    writableSince: rules.writableSince ?? rules.since ?? 1,
    shown: rules.shown ?? 'always',
    published: null,
    schema,
    reference: null,
    unique: null,
    isPrintable: false,
    faultField: null,
    mergedOnto: null,
    values: null,
    bytesMax: null,
    computed: null,
    shownAs: rules.shownAs ?? null,
  }
}

interface TextRules extends Rules {
  readonly isPrintable?: boolean
  readonly charactersMax?: number
  readonly unique?: string
  readonly faultField?: string
}

/** Text; `otherwise` stands for an absent or empty one. */
export function text(rules: TextRules & { readonly otherwise?: string } = {}): FieldOf<string> {
  const schema = { type: 'string', maxLength: rules.charactersMax ?? fieldLimits.textCharactersMax }
  return {
    ...field('text', schema, rules.otherwise ?? '', rules),
    unique: rules.unique ?? null,
    isPrintable: rules.isPrintable ?? false,
    faultField: rules.faultField ?? null,
  }
}

/** A text or null; an empty text in a request means null. */
export function optionalText(rules: TextRules = {}): FieldOf<string | null> {
  return { ...text(rules), zero: null } as Field
}

/** The name every kind of record has: required, not empty, printable, unique unless said. */
export function nameText(rules: { readonly unique?: string | null } = {}): FieldOf<string> {
  return {
    ...text({ required: true, charactersMax: fieldLimits.nameCharactersMax, isPrintable: true }),
    unique: rules.unique === undefined ? 'name must be unique' : rules.unique,
  }
}

/** One of `values`. With `otherwise`, that value stands for an absent or empty one. */
export function choice<const V extends string>(
  values: readonly V[],
  rules: Rules & { readonly otherwise?: V } = {},
): FieldOf<V> {
  const { otherwise } = rules
  const schema = { type: 'string', enum: otherwise === undefined ? values : [...values, ''] }
  return field('choice', schema, otherwise ?? '', rules) as FieldOf<V>
}

export function boolean(rules: Rules = {}): FieldOf<boolean> {
  return field('boolean', { type: 'boolean' }, false, rules)
}

export function integer(
  rules: Rules & { readonly minimum?: number; readonly maximum?: number } = {},
): FieldOf<number> {
  const minimum = rules.minimum ?? 0
  const schema = { type: 'integer', minimum, maximum: rules.maximum ?? Number.MAX_SAFE_INTEGER }
  return field('integer', schema, minimum, rules)
}

/** UTC ms, or null. */
export function timestamp(rules: Rules = {}): FieldOf<number | null> {
  return field('timestamp', { type: 'string', format: 'date-time' }, null, rules)
}

/** `#attribute`, `#all` or `@id` of the kind `to`; sorted, without duplicates. */
export function roleList(
  to: KindName,
  { refusedFrom, ...rules }: Rules & Pick<ReferenceRule, 'refusedFrom'> = {},
): FieldOf<readonly string[]> {
  const schema = {
    type: 'array',
    maxItems: fieldLimits.rolesMax,
    items: { type: 'string', maxLength: fieldLimits.attributeCharactersMax },
  }
  const reference = { to, onDelete: 'strip', ...(refusedFrom === undefined ? {} : { refusedFrom }) }
  return { ...field('roleList', schema, [], rules), reference } as FieldOf<readonly string[]>
}

/** Role attributes; sorted, without duplicates. */
export function attributes(rules: Rules = {}): FieldOf<readonly string[]> {
  const schema = {
    type: 'array',
    maxItems: fieldLimits.attributesMax,
    items: { type: 'string', maxLength: fieldLimits.attributeCharactersMax },
  }
  return field('attributes', schema, [], rules)
}

/** Plain texts, in the order given; each one of `values` where they are given. */
export function texts(
  rules: Rules & {
    readonly values?: readonly string[]
    readonly itemsMin?: number
    readonly itemsMax?: number
    readonly charactersMax?: number
  } = {},
): FieldOf<readonly string[]> {
  const schema = {
    type: 'array',
    ...(rules.itemsMin === undefined ? {} : { minItems: rules.itemsMin }),
    maxItems: rules.itemsMax ?? fieldLimits.referencesMax,
    items: { type: 'string', maxLength: rules.charactersMax ?? fieldLimits.textCharactersMax },
  }
  return { ...field('texts', schema, [], rules), values: rules.values ?? null }
}

/** Id of one record of the kind `to`; `otherwise` stands for an absent or empty one. */
export function reference(
  to: KindName,
  onDelete: OnDelete,
  rules: Rules & { readonly otherwise?: string; readonly isJudgedByRules?: boolean } = {},
): FieldOf<string> {
  const schema = { type: 'string', maxLength: fieldLimits.textCharactersMax }
  const { isJudgedByRules = false } = rules
  return {
    ...field('reference', schema, rules.otherwise ?? '', rules),
    reference: { to, onDelete, isJudgedByRules },
  }
}

/** Ids of records of the kind `to`; sorted, without duplicates. */
export function references(
  to: KindName,
  onDelete: OnDelete,
  rules: Rules & { readonly faultField?: string } = {},
): FieldOf<readonly string[]> {
  const schema = {
    type: 'array',
    maxItems: fieldLimits.referencesMax,
    items: { type: 'string', maxLength: fieldLimits.textCharactersMax },
  }
  return {
    ...field('references', schema, [], rules),
    reference: { to, onDelete },
    faultField: rules.faultField ?? null,
  }
}

/** A flat map, replaced whole. With `keysOf`, its keys are ids of that kind. */
export function map<T extends Json = Json>(
  rules: Rules & {
    readonly values?: JsonObject
    readonly keysOf?: KindName
    readonly bytesMax?: number
  } = {},
): FieldOf<Readonly<Record<string, T>>> {
  const schema = {
    type: 'object',
    maxProperties: fieldLimits.tagsMax,
    additionalProperties: rules.values ?? true,
  }
  const keysOf = rules.keysOf
  return {
    ...field('map', schema, {}, rules),
    bytesMax: rules.bytesMax ?? null,
    reference: keysOf === undefined ? null : { to: keysOf, onDelete: 'strip' },
  } as Field
}

/** A nested object as `schema` says; where that names members, all others are dropped. */
export function object<T extends Json = JsonObject>(
  schema: JsonObject,
  zero: T,
  rules: Rules & { readonly mergedOnto?: JsonObject } = {},
): FieldOf<T> {
  return { ...field('object', schema, zero, rules), mergedOnto: rules.mergedOnto ?? null }
}

/** Nested objects, each of the shape that `item` says, in the order given. */
export function objects<T extends JsonObject = JsonObject>(
  item: JsonObject,
  rules: Rules & { readonly itemsMin?: number; readonly itemsMax: number },
): FieldOf<readonly T[]> {
  const schema = {
    type: 'array',
    ...(rules.itemsMin === undefined ? {} : { minItems: rules.itemsMin }),
    maxItems: rules.itemsMax,
    items: item,
  }
  return field('objects', schema, [], rules)
}

/** Read-only, not stored. `schema` is the response's. */
export function computed(
  source: ComputedSource,
  schema: JsonObject,
  rules: { readonly shown?: Shown } = {},
): ComputedField {
  const made = field('computed', schema, null, { settable: 'never', ...rules })
  return { ...made, kind: 'computed', computed: source }
}

/** A read-only value that is the same for every record. */
export function constant(
  value: Json,
  schema: JsonObject,
  rules: { readonly shown?: Shown } = {},
): ComputedField {
  return computed({ from: 'constant', value }, schema, rules)
}

/** A read-only value of a part that is not built yet: its documented empty value. */
export function notBuiltYetField(
  value: Json,
  schema: JsonObject,
  rules: { readonly shown?: Shown } = {},
): ComputedField {
  return constant(notBuiltYet(value), schema, rules)
}
