import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { notBuiltYet } from '../lib/not-built-yet.ts'
import type { KindName } from './kind-names.ts'

/** Size limits of one record; a body is also limited to 1 MiB. */
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

type FieldKind =
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
 * `create`: fixed at creation; replace and patch report it as ignored. `proposer`: derived by the
 * proposing controller, never taken from a body. `never`: written only by the system.
 */
type Settable = 'always' | 'create' | 'proposer' | 'never'

/** Effect on the referencing record when the referenced record is deleted. */
export type OnDelete = 'refuse' | 'cascade' | 'strip'

interface ReferenceRule {
  /** Descriptor name of the referenced kind. */
  readonly to: KindName
  readonly onDelete: OnDelete
  /** Feature level from which the deletion of a referenced record is refused, like `refuse`. */
  readonly refusedFrom?: number
  /**
   * Whether the rules of the kind handle a missing referenced record; otherwise the answer is 404.
   */
  readonly isJudgedByRules?: boolean
}

/** Source of a read-only value of the detail. */
export type ComputedSource =
  | { readonly from: 'constant'; readonly value: Json }
  /**
   * {_links, entity, id, name} and optionally `urlName` of the record referenced by `by`; or null.
   */
  | {
      readonly from: 'entityRef'
      readonly to: KindName
      readonly by: string
      readonly hasUrlName?: boolean
    }
  /** [{role, name}] of the role list `by`. */
  | { readonly from: 'rolesDisplay'; readonly to: KindName; readonly by: string }
  /** A stored field of the record of `to` referenced by `by`; its zero value when there is none. */
  | { readonly from: 'fieldOf'; readonly to: KindName; readonly by: string; readonly field: string }
  /** Whether a record of `of` references this one by its field `by`. */
  | { readonly from: 'isReferenced'; readonly of: KindName; readonly by: string }
  /** The stored field under another name; `otherwise` instead of null. */
  | { readonly from: 'field'; readonly field: string; readonly otherwise?: Json }
  /** Whether any of the boolean fields has the given value. */
  | { readonly from: 'anyFlag'; readonly of: Readonly<Record<string, boolean>> }
  /** `field` of the record of `of` that references this one by `by`; else `otherwise`, or null. */
  | {
      readonly from: 'fieldOfNaming'
      readonly of: KindName
      readonly by: string
      readonly field: string
      readonly otherwise?: Json
    }
  /** True from the time in `since` through the time in `until` (without end when that is null). */
  | { readonly from: 'isWithin'; readonly since: string; readonly until: string }
  /** End of the lockout of an identity's password after wrong attempts; null: not locked. */
  | { readonly from: 'passwordLock' }
  /**
   * For each value of `key`: the given fields of the records of kind `of` whose field `by`
   * references this record.
   */
  | {
      readonly from: 'byKey'
      readonly of: KindName
      readonly by: string
      readonly key: string
      readonly shows: Readonly<Record<string, readonly string[]>>
    }
  /** Live facts of a router: whether it is connected to any controller, and what it reported. */
  | { readonly from: 'routerStatus'; readonly shows: LiveRouterField }
  /** Cost that the answering controller adds to a terminator for circuits and failed dials. */
  | { readonly from: 'dialCost' }
  /** Whether an identity is connected to an edge router, as a boolean or a word. */
  | { readonly from: 'routerConnection'; readonly shows: 'flag' | 'word' }
  /** Last authenticated activity of an identity; null: never. */
  | { readonly from: 'lastSeen' }
  /** Since when a router is connected to a controller, or to none. */
  | { readonly from: 'routerPresence'; readonly shows: RouterPresenceField }
  /** Permissions of the caller on this record by its policies: [Bind, Dial], or [Invalid]. */
  | { readonly from: 'permissions' }
  /** One entry per policy that links the caller to this record. */
  | { readonly from: 'policyQueries' }
  /**
   * Map from config type name to data, for the requested types: configs in `by`, and those of the
   * caller.
   */
  | { readonly from: 'configData'; readonly by: string }

/** Facts about an identity that change without a change of its record. */
export type LiveIdentityFact =
  | 'isConnected'
  | 'hasApiSession'
  | 'isDisabled'
  | 'isLocked'
  | 'lastSeenAt'

export type RouterPresenceField = 'onlineSince' | 'offlineSince'

export type LiveRouterField =
  | 'isOnline'
  | 'hostname'
  | 'supportedProtocols'
  | 'syncStatus'
  | 'version'
  | 'versionInfo'
  | 'versionInfoOrEmpty'
  | 'capabilities'
  | 'capabilitiesMask'
  | 'interfaces'
  | 'linkListeners'

/** Facts that filters may use although no record contains them. */
export type FilterFact = LiveRouterField | RouterPresenceField | LiveIdentityFact

/**
 * When a detail shows the field. `whenSet`: unless it is null, empty or false. A condition: when
 * another field of the record has one of these values.
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
   * Value when create or replace omit the field. Stored records omit this value as well, so the
   * zero of a field that was ever stored must not change.
   */
  readonly zero: Json
  /** Feature level that added the field; below it, the field is unset, and unknown in requests. */
  readonly since: number
  /** Feature level from which it is writable, if later than `since`. */
  readonly writableSince: number
  readonly shown: Shown
  /**
   * Whether a detail shows null for an empty list, object or text, as OpenZiti does for this field:
   * Terraform takes another empty value for a change.
   */
  readonly isNullIfEmpty: boolean
  /**
   * Whether events about a record show the field; null: not stated, because its kind is not
   * published.
   */
  readonly published: 'shown' | 'withheld' | null
  readonly schema: JsonObject
  readonly reference: ReferenceRule | null
  /**
   * Message that refuses a second record with the same value, with a placeholder {value}; null: not
   * unique.
   */
  readonly unique: string | null
  /** Whether it refuses characters that a terminal interprets, from feature level 2. */
  readonly isPrintable: boolean
  /**
   * Field that a refusal names, if this field is derived from another one of the body; null: this
   * field.
   */
  readonly faultField: string | null
  /**
   * For objects that a patch merges: the patch contains only changed members, at any depth, and is
   * merged into the stored value, or into this value if none is stored. null: a patch replaces the
   * object.
   */
  readonly mergedOnto: JsonObject | null
  /** Allowed values of the elements of `texts`; null: any. */
  readonly values: readonly string[] | null
  /** Maximum bytes of a map as canonical JSON; null: limited only by the body size. */
  readonly bytesMax: number | null
  readonly computed: ComputedSource | null
  /** Source that the detail shows instead of the stored field. */
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
  readonly nullIfEmpty?: boolean
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
    isNullIfEmpty: rules.nullIfEmpty ?? false,
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

/** Text; `otherwise` replaces an absent or empty one. */
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

/** The name of a record: required, not empty, printable, unique by default. */
export function nameText(rules: { readonly unique?: string | null } = {}): FieldOf<string> {
  return {
    ...text({ required: true, charactersMax: fieldLimits.nameCharactersMax, isPrintable: true }),
    unique: rules.unique === undefined ? 'name must be unique' : rules.unique,
  }
}

/** One of `values`; `otherwise` replaces an absent or empty one. */
export function choice<const V extends string>(
  values: readonly V[],
  rules: Rules & { readonly otherwise?: V } = {},
): FieldOf<V> {
  const { otherwise } = rules
  const schema = { type: 'string', enum: otherwise === undefined ? values : [...values, ''] }
  return field('choice', schema, otherwise ?? '', rules) as FieldOf<V>
}

/** A boolean; its zero is false. */
export function boolean(rules: Rules = {}): FieldOf<boolean> {
  return field('boolean', { type: 'boolean' }, false, rules)
}

/** An integer. Its zero is the minimum, which is 0 unless given. */
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
  const nullable = { nullIfEmpty: true, ...rules }
  return { ...field('roleList', schema, [], nullable), reference } as FieldOf<readonly string[]>
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

/** Plain texts in the given order; each one of `values` if those are given. */
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

/** Id of one record of the kind `to`; `otherwise` replaces an absent or empty one. */
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

/** A flat map that a patch replaces completely. With `keysOf`, its keys are ids of that kind. */
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

/** A nested object described by `schema`; if that lists members, all others are dropped. */
export function object<T extends Json = JsonObject>(
  schema: JsonObject,
  zero: T,
  rules: Rules & { readonly mergedOnto?: JsonObject } = {},
): FieldOf<T> {
  return { ...field('object', schema, zero, rules), mergedOnto: rules.mergedOnto ?? null }
}

/** Nested objects described by `item`, in the given order. */
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

/** A computed field: read-only, not stored. `schema` describes it in responses. */
export function computed(
  source: ComputedSource,
  schema: JsonObject,
  rules: Pick<Rules, 'shown' | 'nullIfEmpty'> = {},
): ComputedField {
  const made = field('computed', schema, null, { settable: 'never', ...rules })
  return { ...made, kind: 'computed', computed: source }
}

/** A read-only value that is the same for every record. */
export function constant(
  value: Json,
  schema: JsonObject,
  rules: Pick<Rules, 'shown' | 'nullIfEmpty'> = {},
): ComputedField {
  return computed({ from: 'constant', value }, schema, rules)
}

/** The documented empty value of a part that is not built yet; read-only. */
export function notBuiltYetField(
  value: Json,
  schema: JsonObject,
  rules: Pick<Rules, 'shown' | 'nullIfEmpty'> = {},
): ComputedField {
  return constant(notBuiltYet(value), schema, rules)
}
