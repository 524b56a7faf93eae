import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import type { KindName } from './kind-names.ts'

/** Size limits of one record; a body is also limited to 1 MiB. */
export const fieldLimits = {
  /** Maximum characters of a record's name; above that: 400 COULD_NOT_VALIDATE. */
  nameCharactersMax: 512,
  /**
   * Maximum characters of another text field without its own limit; above that: 400
   * COULD_NOT_VALIDATE.
   */
  textCharactersMax: 4096,
  /** Maximum role attributes in one field of a record; above that: 400 COULD_NOT_VALIDATE. */
  attributesMax: 1024,
  /**
   * Maximum characters of one role attribute, or of one role in a policy; above that: 400
   * COULD_NOT_VALIDATE.
   */
  attributeCharactersMax: 512,
  /** Maximum roles in one role list of a policy; above that: 400 COULD_NOT_VALIDATE. */
  rolesMax: 16_384,
  /**
   * Maximum ids in one list of references, and maximum elements of another list without its own
   * limit; above that: 400 COULD_NOT_VALIDATE.
   */
  referencesMax: 1024,
  /** Maximum keys of one map field, such as `tags`; above that: 400 COULD_NOT_VALIDATE. */
  tagsMax: 1024,
  /** Maximum bytes of the tags of one record, as canonical JSON. */
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
 * When a field can be set. `create`: only at creation; replace and patch report it as ignored.
 * `proposer`: the proposing controller sets it after its own checks, if necessary from members of
 * the body. `never`: only the system writes it.
 */
type Settable = 'always' | 'create' | 'proposer' | 'never'

/** Effect on the referencing record when the referenced record is deleted. */
export type ReferenceDeleteEffect = 'refuse' | 'cascade' | 'strip'

interface ReferenceRule {
  /** Name of the kind that the field references. */
  readonly to: KindName
  readonly onDelete: ReferenceDeleteEffect
  /**
   * Feature level from which a referenced record cannot be deleted, as with the effect `refuse`.
   */
  readonly refusedFrom?: number
  /**
   * True if the rules of the kind handle a reference to a missing record; otherwise the response is
   * 404, or 400 for a role list.
   */
  readonly isJudgedByRules?: boolean
}

/** Where the value of a read-only field in a detail comes from. */
export type ComputedSource =
  | { readonly from: 'constant'; readonly value: Json }
  /**
   * An object {_links, entity, id, name}, optionally with `urlName`, that describes the record that
   * the field `by` references; null if there is none.
   */
  | {
      readonly from: 'entityRef'
      readonly to: KindName
      readonly by: string
      readonly hasUrlName?: boolean
    }
  /** A list [{role, name}] of the roles in the role list field `by`. */
  | { readonly from: 'rolesDisplay'; readonly to: KindName; readonly by: string }
  /**
   * A stored field of the record of kind `to` that the field `by` references; the field's zero
   * value when there is no such record.
   */
  | { readonly from: 'fieldOf'; readonly to: KindName; readonly by: string; readonly field: string }
  /** Whether the field `by` of any record of kind `of` references this record. */
  | { readonly from: 'isReferenced'; readonly of: KindName; readonly by: string }
  /** The value of the stored field `field`, under another name; `otherwise` replaces null. */
  | { readonly from: 'field'; readonly field: string; readonly otherwise?: Json }
  /** Whether at least one of the boolean fields has the given value. */
  | { readonly from: 'anyFlag'; readonly of: Readonly<Record<string, boolean>> }
  /**
   * `field` of the record of kind `of` whose field `by` references this record; if there is none,
   * `otherwise` or null.
   */
  | {
      readonly from: 'fieldOfNaming'
      readonly of: KindName
      readonly by: string
      readonly field: string
      readonly otherwise?: Json
    }
  /**
   * True if the field `since` contains a time, and the time in the field `until` is in the future
   * or null.
   */
  | { readonly from: 'isWithin'; readonly since: string; readonly until: string }
  /**
   * Begin and, if there is one, end of an identity's password lockout after wrong attempts; null if
   * the password is not locked.
   */
  | { readonly from: 'passwordLock' }
  /**
   * An object with at most one entry for each key of `shows`: the id and the given fields of a
   * record of kind `of` whose field `by` references this record, and whose field `key` has that
   * value. Of several such records, the last in id order is shown.
   */
  | {
      readonly from: 'byKey'
      readonly of: KindName
      readonly by: string
      readonly key: string
      readonly shows: Readonly<Record<string, readonly string[]>>
    }
  /**
   * Live status of a router: whether it is connected to any controller, and the values that it
   * reported.
   */
  | { readonly from: 'routerStatus'; readonly shows: LiveRouterField }
  /**
   * Cost that the responding controller adds to a terminator for open circuits and failed dials.
   */
  | { readonly from: 'dialCost' }
  /** Whether an identity is connected to an edge router, as a boolean or as text. */
  | { readonly from: 'routerConnection'; readonly shows: 'flag' | 'word' }
  /** Time of an identity's last authenticated activity; null: never. */
  | { readonly from: 'lastSeen' }
  /**
   * Time since which a router is connected to a controller, or since which it is connected to none.
   */
  | { readonly from: 'routerPresence'; readonly shows: RouterPresenceField }
  /**
   * Permissions that policies give the caller on this record: Bind, Dial or both; [Invalid] without
   * any.
   */
  | { readonly from: 'permissions' }
  /**
   * One entry for each policy that connects the caller with this record; if there is none, or if no
   * posture check exists, one placeholder for each permission.
   */
  | { readonly from: 'policyQueries' }
  /**
   * Map from config type name to data, for the requested types: the configs that the field `by`
   * references, overridden by the configs for the caller.
   */
  | { readonly from: 'configData'; readonly by: string }

/** Values of an identity that change without a write to its record. */
export type LiveIdentityField =
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

/**
 * Values that filters may use, and that are computed when the filter is evaluated and not read from
 * a field.
 */
export type LiveFilterField = LiveRouterField | RouterPresenceField | LiveIdentityField

/**
 * When a detail contains the field. `whenSet`: unless its value is null, false, an empty string or
 * an empty object. A condition: only if another field of the record has one of the given values.
 */
export type DetailVisibility = 'always' | 'whenSet' | 'never' | VisibilityCondition

export interface VisibilityCondition {
  readonly field: string
  readonly is: readonly Json[]
}

/**
 * A field of a descriptor, without its TypeScript type. `schema` describes a value that is present
 * and not null; in requests, null means absent, unless the field is required.
 */
export interface Field {
  readonly kind: FieldKind
  readonly settable: Settable
  readonly isRequired: boolean
  /**
   * Value of the field if a create omits it, or if a replace omits it and `settable` is `always`.
   * Stored records omit fields with this value, so the zero value of a field must not change after
   * a release has stored records with it.
   */
  readonly zero: Json
  /**
   * Feature level that introduced the field. Below that level the field is unset, and requests
   * treat it as unknown.
   */
  readonly since: number
  /** Feature level from which requests can set the field, if later than `since`. */
  readonly writableSince: number
  readonly shown: DetailVisibility
  /**
   * Whether a detail shows null instead of an empty list, object or string, as OpenZiti does for
   * this field. Otherwise Terraform would report a change.
   */
  readonly isNullIfEmpty: boolean
  /**
   * Whether events about a record show the field; null if the descriptor does not decide this,
   * because the field is computed, or because the kind is a view or causes no events.
   */
  readonly published: 'shown' | 'withheld' | null
  readonly schema: JsonObject
  readonly reference: ReferenceRule | null
  /**
   * Message that refuses a second record with the same value; it may contain the placeholder
   * {value}. null if several records may have the same value.
   */
  readonly unique: string | null
  /** Whether, from feature level 2, a value with terminal control characters is refused. */
  readonly isPrintable: boolean
  /**
   * Field that a refusal names, if this field is derived from another member of the body; null: the
   * refusal names this field.
   */
  readonly faultField: string | null
  /**
   * A patch of this object may omit members, at any depth. The patch is merged into the stored
   * value, or into this value if none is stored. null: a patch replaces the whole object.
   */
  readonly mergedOnto: JsonObject | null
  /** Allowed values of the elements of `textListField`; null: all values are allowed. */
  readonly values: readonly string[] | null
  /** Maximum size of a map in bytes of canonical JSON; null: only the body size is limited. */
  readonly bytesMax: number | null
  readonly computed: ComputedSource | null
  /** Source of the value that a detail shows instead of the stored value. */
  readonly shownAs: ComputedSource | null
}

/** A field with the TypeScript type of its stored value, for `EntityOf`. */
export interface TypedField<T> extends Field {
  readonly stored?: T
}
export interface ComputedField extends Field {
  readonly kind: 'computed'
}

interface Rules {
  readonly settable?: Settable
  readonly required?: boolean
  readonly shown?: DetailVisibility
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

/**
 * A string; `otherwise` is the value if a create or replace omits the field, or if a request sends
 * an empty string.
 */
export function textField(
  rules: TextRules & { readonly otherwise?: string } = {},
): TypedField<string> {
  const schema = { type: 'string', maxLength: rules.charactersMax ?? fieldLimits.textCharactersMax }
  return {
    ...field('text', schema, rules.otherwise ?? '', rules),
    unique: rules.unique ?? null,
    isPrintable: rules.isPrintable ?? false,
    faultField: rules.faultField ?? null,
  }
}

/** A string or null; an empty string in a request means null. */
export function optionalTextField(rules: TextRules = {}): TypedField<string | null> {
  return { ...textField(rules), zero: null } as Field
}

/** The name of a record: required, not empty, printable, unique by default. */
export function nameField(rules: { readonly unique?: string | null } = {}): TypedField<string> {
  return {
    ...textField({
      required: true,
      charactersMax: fieldLimits.nameCharactersMax,
      isPrintable: true,
    }),
    unique: rules.unique === undefined ? 'name must be unique' : rules.unique,
  }
}

/**
 * One of `values`; `otherwise` is the value if a create or replace omits the field, or if a request
 * sends an empty string.
 */
export function choiceField<const V extends string>(
  values: readonly V[],
  rules: Rules & { readonly otherwise?: V } = {},
): TypedField<V> {
  const { otherwise } = rules
  const schema = { type: 'string', enum: otherwise === undefined ? values : [...values, ''] }
  return field('choice', schema, otherwise ?? '', rules) as TypedField<V>
}

/** A boolean; its zero value is false. */
export function booleanField(rules: Rules = {}): TypedField<boolean> {
  return field('boolean', { type: 'boolean' }, false, rules)
}

/** An integer. Its zero value is the minimum, which is 0 unless another one is given. */
export function integerField(
  rules: Rules & { readonly minimum?: number; readonly maximum?: number } = {},
): TypedField<number> {
  const minimum = rules.minimum ?? 0
  const schema = { type: 'integer', minimum, maximum: rules.maximum ?? Number.MAX_SAFE_INTEGER }
  return field('integer', schema, minimum, rules)
}

/** Field that contains a time in UTC ms, or null. */
export function timestampField(rules: Rules = {}): TypedField<number | null> {
  return field('timestamp', { type: 'string', format: 'date-time' }, null, rules)
}

/**
 * A list of roles, each `#attribute`, `#all` or the `@id` of a record of kind `to`; sorted, without
 * duplicates.
 */
export function roleListField(
  to: KindName,
  { refusedFrom, ...rules }: Rules & Pick<ReferenceRule, 'refusedFrom'> = {},
): TypedField<readonly string[]> {
  const schema = {
    type: 'array',
    maxItems: fieldLimits.rolesMax,
    items: { type: 'string', maxLength: fieldLimits.attributeCharactersMax },
  }
  const reference = { to, onDelete: 'strip', ...(refusedFrom === undefined ? {} : { refusedFrom }) }
  const nullable = { nullIfEmpty: true, ...rules }
  return { ...field('roleList', schema, [], nullable), reference } as TypedField<readonly string[]>
}

/** Role attributes; sorted, without duplicates. */
export function roleAttributesField(rules: Rules = {}): TypedField<readonly string[]> {
  const schema = {
    type: 'array',
    maxItems: fieldLimits.attributesMax,
    items: { type: 'string', maxLength: fieldLimits.attributeCharactersMax },
  }
  return field('attributes', schema, [], rules)
}

/** Strings in the given order; if `values` are given, each must be one of them. */
export function textListField(
  rules: Rules & {
    readonly values?: readonly string[]
    readonly itemsMin?: number
    readonly itemsMax?: number
    readonly charactersMax?: number
  } = {},
): TypedField<readonly string[]> {
  const schema = {
    type: 'array',
    ...(rules.itemsMin === undefined ? {} : { minItems: rules.itemsMin }),
    maxItems: rules.itemsMax ?? fieldLimits.referencesMax,
    items: { type: 'string', maxLength: rules.charactersMax ?? fieldLimits.textCharactersMax },
  }
  return { ...field('texts', schema, [], rules), values: rules.values ?? null }
}

/**
 * Id of a record of kind `to`; `otherwise` is the value if a create or replace omits the field, or
 * if a request sends an empty string.
 */
export function idReferenceField(
  to: KindName,
  onDelete: ReferenceDeleteEffect,
  rules: Rules & { readonly otherwise?: string; readonly isJudgedByRules?: boolean } = {},
): TypedField<string> {
  const schema = { type: 'string', maxLength: fieldLimits.textCharactersMax }
  const { isJudgedByRules = false } = rules
  return {
    ...field('reference', schema, rules.otherwise ?? '', rules),
    reference: { to, onDelete, isJudgedByRules },
  }
}

/** Ids of records of kind `to`; sorted, without duplicates. */
export function idReferencesField(
  to: KindName,
  onDelete: ReferenceDeleteEffect,
  rules: Rules & { readonly faultField?: string } = {},
): TypedField<readonly string[]> {
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

/**
 * A flat map; a patch replaces the whole map, unless the field sets `mergedOnto`. With `keysOf`,
 * the keys are ids of records of that kind.
 */
export function mapField<T extends Json = Json>(
  rules: Rules & {
    readonly values?: JsonObject
    readonly keysOf?: KindName
    readonly bytesMax?: number
  } = {},
): TypedField<Readonly<Record<string, T>>> {
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

/**
 * A nested object described by `schema`; if the schema lists members, the object keeps only these.
 */
export function objectField<T extends Json = JsonObject>(
  schema: JsonObject,
  zero: T,
  rules: Rules & { readonly mergedOnto?: JsonObject } = {},
): TypedField<T> {
  return { ...field('object', schema, zero, rules), mergedOnto: rules.mergedOnto ?? null }
}

/** Nested objects described by `item`, in the given order. */
export function objectListField<T extends JsonObject = JsonObject>(
  item: JsonObject,
  rules: Rules & { readonly itemsMin?: number; readonly itemsMax: number },
): TypedField<readonly T[]> {
  const schema = {
    type: 'array',
    ...(rules.itemsMin === undefined ? {} : { minItems: rules.itemsMin }),
    maxItems: rules.itemsMax,
    items: item,
  }
  return field('objects', schema, [], rules)
}

/** A computed field: read-only, not stored. `schema` describes it in responses. */
export function computedField(
  source: ComputedSource,
  schema: JsonObject,
  rules: Pick<Rules, 'shown' | 'nullIfEmpty'> = {},
): ComputedField {
  const made = field('computed', schema, null, { settable: 'never', ...rules })
  return { ...made, kind: 'computed', computed: source }
}

/** A read-only value that is the same for every record. */
export function constantField(
  value: Json,
  schema: JsonObject,
  rules: Pick<Rules, 'shown' | 'nullIfEmpty'> = {},
): ComputedField {
  return computedField({ from: 'constant', value }, schema, rules)
}
