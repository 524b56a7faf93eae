import { assert } from '../lib/assert.ts'
import type { BaseRecordFields, EntityRecord } from '../lib/entity-record.ts'
import type { ProblemCode } from '../lib/problems.ts'
import {
  type ComputedField,
  type VisibilityCondition,
  type Field,
  fieldLimits,
  type TypedField,
  mapField,
  type LiveFilterField,
} from './fields.ts'
import type { KindName } from './kind-names.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { type EventVisibilityFields, markShownInEvents } from './event-visibility.ts'

export type EntityApi = 'client' | 'management' | 'fabric'
export type OperationShape = 'list' | 'create' | 'detail' | 'replace' | 'patch' | 'delete'

/**
 * Types of the filter language. `any` adopts the type of the literal with which it is compared.
 */
export type SymbolType = 'string' | 'number' | 'boolean' | 'datetime' | 'any' | 'stringSet'

/**
 * A name that a filter may use. `path` selects a member of the record; for a symbol with `list`,
 * the value is the ids in that sub-list.
 */
export interface FilterSymbol {
  readonly name: string
  /**
   * Type of the symbol. For a symbol with `through`, the type is `any` until the symbol of the
   * referenced record is known.
   */
  readonly type: SymbolType
  readonly path: readonly string[]
  /**
   * Live value, which is computed when the filter is evaluated and not read from a field, for
   * example whether a router is connected; null for every other symbol.
   */
  readonly live: LiveFilterField | null
  readonly list: string | null
  /**
   * Kind of the referenced records, for a list of references and for a symbol with `through`; null
   * for every other symbol.
   */
  readonly of: KindName | null
  /** Symbol of the referenced record whose value is used instead of the reference's id. */
  readonly through: string | null
  /**
   * Values that a filter may also write as a number, counted from 1; null for every other symbol.
   */
  readonly numbered: readonly string[] | null
}

/** A sub-list of a record, at `/{collection}/{id}/{path}`: records of the kind `of`. */
export interface SubList {
  readonly of: KindName
  /**
   * API that serves the list. On the client API, a caller gets the list only for a parent record
   * that the caller may see.
   */
  readonly api: EntityApi
  /** Path segment; by default the key of the list in `lists`. */
  readonly path: string
  /**
   * The listed records, by their relation to this record. `roles`: records that this record's role
   * list `by` matches. `policies`: records of kind `of` whose role list `by` matches this record.
   * `access`: records that service policies connect with this record. `policyLinks`: records that
   * policies of kind `by` link with this record. `named`: records that this record's field `by`
   * references. `naming`: records of kind `of` whose field `by` references this record.
   */
  readonly through: 'roles' | 'policies' | 'access' | 'policyLinks' | 'named' | 'naming'
  readonly by: string | null
  /** Operation id, if it differs from `list<Kind><Listed kinds>`. */
  readonly operationId: string | null
  /**
   * The result for a parent record that does not exist: `notFound` answers 404, `empty` an empty
   * list.
   */
  readonly unknownParent: 'notFound' | 'empty'
  /**
   * Kind whose members the OpenAPI document also declares for the rows of the list, as optional
   * members; null: none. Controllers never send the members that only this kind has.
   */
  readonly declaredAs: KindName | null
}

/**
 * A member of request bodies that a field does not describe completely: code converts the member
 * when the body becomes a command, or the member's schema differs from that of the field with its
 * name.
 */
export interface BodyMember {
  readonly schema: JsonObject
  readonly in: readonly RequestMode[]
  readonly requiredIn: readonly RequestMode[]
}

/**
 * A link in `_links`, in addition to `self`: to `<self>/<key>`, or to the record that the field
 * `by` references.
 */
export interface EntityLink {
  readonly key: string
  readonly by: { readonly field: string; readonly collection: string } | null
  /** null: every record has the link. */
  readonly when: VisibilityCondition | null
}

/**
 * Selects the records of a table that belong to a kind, by the value of an indexed boolean field.
 */
interface FieldScope {
  readonly field: string
  readonly value: boolean
}

/**
 * Which records of a kind a caller of the client API may see. `access`: services to which the
 * caller's service policies give access. `reference`: records whose field `by` references the
 * caller.
 */
export type CallerScope<By = string> =
  | { readonly through: 'access' }
  | { readonly through: 'reference'; readonly by: By }

/**
 * A descriptor without static types, for code that handles every kind. The descriptor's name is the
 * name of a kind, or of rows that have no table but can be listed like records; `Entity<string>`
 * may be either.
 */
export interface Entity<N extends string = KindName> {
  /**
   * Name of the kind, singular, in camel case: `servicePolicy`. Also used in commands, keys and
   * messages.
   */
  readonly name: N
  /** Plural name of the kind, in camel case: `servicePolicies`. */
  readonly plural: string
  /**
   * The kind that stores the records: this kind, or another kind of which this kind is a view. A
   * view has its own operations and fields. The kind that stores the records has every stored field
   * of its views; all of them share ids, names and references.
   */
  readonly table: N | KindName
  /**
   * Condition that a record of the table must meet to belong to this kind; a record that is created
   * as this kind gets the value. null: every record of the table belongs to the kind.
   */
  readonly scope: FieldScope | null
  /** Feature level that introduced the kind; below that level, no records of the kind exist. */
  readonly since: number
  /** Name of the collection in paths, and `entity` in an EntityRef: `service-policies`. */
  readonly collection: string
  /** Operations that each API serves, with the permission that each operation requires. */
  readonly operations: Readonly<
    Partial<Record<EntityApi, Readonly<Partial<Record<OperationShape, string>>>>>
  >
  /**
   * Which records callers of the client API see; null if `operations` has none for the client API.
   */
  readonly callerScope: CallerScope | null
  readonly operationIds: Readonly<Partial<Record<OperationShape, string>>>
  /**
   * HTTP statuses with which these operations may refuse, in addition to the statuses of every
   * operation of the same shape; for the OpenAPI document.
   */
  readonly refusals: Readonly<Partial<Record<OperationShape, readonly number[]>>>
  /**
   * Member of a create body that is used as the id. null: a new id is generated, unless the code
   * that prepares the command sets the id.
   */
  readonly idFrom: string | null
  readonly fields: Readonly<Record<string, Field>>
  /** Names of `fields`, sorted. */
  readonly fieldNames: readonly string[]
  readonly body: Readonly<Record<string, BodyMember>>
  /** Additional query parameters of the list, per API. */
  readonly listParameters: Readonly<Partial<Record<EntityApi, readonly string[]>>>
  /**
   * Indexed fields: the state finds the records with a given value, list element or map key without
   * a scan.
   */
  readonly indexes: readonly string[]
  readonly symbols: readonly FilterSymbol[]
  readonly links: readonly EntityLink[]
  readonly lists: Readonly<Record<string, SubList>>
  /**
   * The map `field` whose bytes are added up over all records of one owner, so that the total per
   * owner can be limited; `by` references the owner.
   */
  readonly weighed: { readonly field: string; readonly by: string } | null
  /**
   * If one of these boolean fields of a record is true, the operation is refused with this code.
   */
  readonly refuse: {
    readonly update: Readonly<Record<string, ProblemCode>>
    readonly delete: Readonly<Record<string, ProblemCode>>
  }
  /**
   * `entities`: both digests include the records of the kind. `state`: only the state digest
   * includes them.
   */
  readonly digest: 'entities' | 'state'
  /** Whether events report changes of records of this kind. */
  readonly isPublished: boolean
  /** Entity type that events contain for records of this kind. */
  readonly publishedAs: string
  /**
   * Whether the list accepts the parameters `roleFilter` and `roleSemantic`, which select by
   * `roleAttributes`.
   */
  readonly hasRoleFilter: boolean
}

interface TagsField {
  readonly tags: TypedField<Readonly<Record<string, string | number | boolean | null>>>
}
type Fields = Readonly<Record<string, Field>>
type StoredKey<F> = {
  [K in keyof F]: F[K] extends ComputedField ? never : K
}[keyof F]
type TypeOf<F> = F extends TypedField<infer T> ? T : never

/** The record type of a descriptor. */
export type EntityOf<D> = D extends { readonly types?: infer F }
  ? {
      readonly [
        K in keyof BaseRecordFields | StoredKey<NonNullable<F>>
      ]: K extends keyof BaseRecordFields
        ? BaseRecordFields[K]
        : TypeOf<NonNullable<F>[K & keyof NonNullable<F>]>
    }
  : never

/** A record that is in no table: every field has its zero value. */
export function zeroRecord<D extends Pick<Entity<string>, 'fields'>>(
  { fields }: D,
  id: string,
): EntityOf<D> {
  const record: Record<string, Json> = { id, createdAt: 0, updatedAt: 0, revision: 0 }
  for (const [name, { zero, computed }] of Object.entries(fields)) {
    if (computed === null) record[name] = zero
  }
  return record as EntityOf<D>
}

type SymbolName<F> = Extract<keyof F, string>
type SymbolInput<F> =
  | SymbolName<F>
  | {
      readonly name: string
      readonly field: SymbolName<F>
      readonly numbered?: readonly string[]
    }
  | { readonly name: string; readonly path: readonly string[]; readonly type: SymbolType }
  | {
      readonly name: string
      readonly live: LiveFilterField
      readonly type: SymbolType
    }
  | { readonly name: string; readonly list: string }
  /**
   * A field of the referenced record, for example `service.name`: the symbol `name` of the record
   * of kind `of`. Such a symbol is not sortable.
   */
  | {
      readonly name: string
      readonly through: {
        readonly field: SymbolName<F>
        readonly of: KindName
        readonly symbol: string
      }
    }

/**
 * Type that does not compile unless a kind with operations on the client API states which records
 * callers see.
 */
type Served<F extends Fields> =
  | {
      readonly operations: Entity['operations']
      readonly callerScope: CallerScope<SymbolName<F>>
    }
  | {
      readonly operations: Omit<Entity['operations'], 'client'> & { readonly client?: never }
      readonly callerScope?: never
    }

/**
 * Type that does not compile unless a kind with its own table states whether events report its
 * records and, if so, for each stored field whether events show it.
 */
type Publication<N extends string, F> = N extends KindName
  ?
      | { readonly table: KindName; readonly isPublished?: never; readonly publishedAs?: never }
      | { readonly table?: never; readonly isPublished: false; readonly publishedAs?: never }
      | {
          readonly table?: never
          readonly isPublished: true
          /** Entity type in events, if it differs from the plural. */
          readonly publishedAs?: string
          readonly fields: F & EventVisibilityFields
        }
  : { readonly table?: never; readonly isPublished?: never; readonly publishedAs?: never }

type Definition<N extends string, F extends Fields> = Served<F> &
  Publication<N, F> &
  DefinitionBase<N, F>

interface DefinitionBase<N extends string, F extends Fields> {
  readonly name: N
  readonly plural: string
  /**
   * Name of the collection, if it differs from the plural in kebab case. Needed for a view that
   * another API serves under the name of the kind that stores the records.
   */
  readonly collection?: string
  readonly scope?: FieldScope
  readonly since?: number
  readonly operationIds?: Entity['operationIds']
  readonly refusals?: Entity['refusals']
  readonly idFrom?: string
  readonly fields: F
  readonly body?: Entity['body']
  readonly listParameters?: Entity['listParameters']
  /** Additional indexes; references and unique fields are always indexed. */
  readonly indexes?: readonly SymbolName<F>[]
  readonly symbols: readonly SymbolInput<F>[]
  readonly links?: readonly (
    | string
    | { readonly key: string; readonly field: SymbolName<F>; readonly collection: string }
    | {
        readonly key: string
        readonly when: VisibilityCondition & { readonly field: SymbolName<F> }
      }
  )[]
  readonly lists?: Readonly<
    Record<
      string,
      Pick<SubList, 'of' | 'through'> & {
        readonly api?: EntityApi
        readonly path?: string
        readonly by?: string
        readonly operationId?: string
        readonly unknownParent?: SubList['unknownParent']
        readonly declaredAs?: KindName
      }
    >
  >
  readonly weighed?: { readonly field: SymbolName<F> | 'tags'; readonly by: SymbolName<F> }
  readonly refuse?: Partial<Entity['refuse']>
  readonly digest?: Entity['digest']
  readonly hasRoleFilter?: boolean
}

const symbolTypes: Readonly<Record<Field['kind'], SymbolType>> = {
  text: 'string',
  choice: 'string',
  boolean: 'boolean',
  integer: 'number',
  timestamp: 'datetime',
  roleList: 'stringSet',
  attributes: 'stringSet',
  texts: 'stringSet',
  reference: 'string',
  references: 'stringSet',
  map: 'any',
  object: 'any',
  objects: 'any',
  computed: 'any',
}

/** A symbol whose value is a field of the record itself. */
function stored(name: string, type: SymbolType, path: readonly string[]): FilterSymbol {
  return { name, type, path, live: null, list: null, of: null, through: null, numbered: null }
}

/** Symbols that every kind has; after `tags`, a filter may add the name of a tag. */
const baseSymbols: readonly FilterSymbol[] = [
  stored('id', 'string', ['id']),
  stored('createdAt', 'datetime', ['createdAt']),
  stored('updatedAt', 'datetime', ['updatedAt']),
  stored('tags', 'any', ['tags']),
  stored('isSystem', 'boolean', ['isSystem']),
]

function symbolOf(fields: Fields, input: SymbolInput<Fields>): FilterSymbol {
  if (typeof input === 'string') return symbolOf(fields, { name: input, field: input })
  if ('list' in input) {
    return { ...stored(input.name, 'stringSet', []), list: input.list }
  }
  if ('path' in input) return stored(input.name, input.type, input.path)
  if ('live' in input) return { ...stored(input.name, input.type, []), live: input.live }
  const key = 'through' in input ? input.through.field : input.field
  const field = fields[key]
  assert(field !== undefined, `symbol ${input.name} names a field`)
  if ('through' in input) {
    const { of, symbol } = input.through
    assert(
      field.kind === 'reference' && field.reference?.to === of,
      `symbol ${input.name} leads through a reference to ${of}`,
    )
    return { ...stored(input.name, 'any', [key]), of, through: symbol }
  }
  const of = field.kind === 'references' ? (field.reference?.to ?? null) : null
  const numbered = 'numbered' in input ? (input.numbered ?? null) : null
  return { ...stored(input.name, symbolTypes[field.kind], [key]), of, numbered }
}

/** Whether a record belongs to this kind, which may share its table with other kinds. */
export function isRecordInKindScope(
  { scope }: Pick<Entity, 'scope'>,
  record: EntityRecord,
): boolean {
  return scope === null || (record[scope.field] === true) === scope.value
}

/** Converts camel case to kebab case: `servicePolicies` → `service-policies`. */
export function toKebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/**
 * Defines a kind of record as data, from which schemas, routes, filters and forms are derived.
 * Field names are checked at compile time. Every kind also has `tags`.
 */
export function defineEntity<const N extends string, const F extends Fields>(
  definition: Definition<N, F>,
): Entity<N> & { readonly types?: F & TagsField } {
  const tags = mapField({ bytesMax: fieldLimits.tagsBytesMax })
  const fields: Fields = { ...definition.fields, ...markShownInEvents({ tags }) }
  const indexes = new Set<string>(definition.indexes)
  for (const [name, field] of Object.entries(fields)) {
    if (field.reference !== null) indexes.add(name)
  }
  const lists: Record<string, SubList> = {}
  for (const [key, list] of Object.entries(definition.lists ?? {})) {
    lists[key] = {
      ...list,
      api: list.api ?? ('fabric' in definition.operations ? 'fabric' : 'management'),
      path: list.path ?? key,
      by: list.by ?? null,
      operationId: list.operationId ?? null,
      unknownParent: list.unknownParent ?? 'empty',
      declaredAs: list.declaredAs ?? null,
    }
  }
  return {
    name: definition.name,
    plural: definition.plural,
    table: definition.table ?? definition.name,
    scope: definition.scope ?? null,
    since: definition.since ?? 1,
    collection: definition.collection ?? toKebabCase(definition.plural),
    operations: definition.operations,
    callerScope: definition.callerScope ?? null,
    operationIds: definition.operationIds ?? {},
    refusals: definition.refusals ?? {},
    idFrom: definition.idFrom ?? null,
    fields,
    fieldNames: Object.keys(fields).sort(),
    body: definition.body ?? {},
    listParameters: definition.listParameters ?? {},
    indexes: [...indexes].sort(),
    symbols: [...baseSymbols, ...definition.symbols.map((input) => symbolOf(fields, input))],
    links: (definition.links ?? []).map((link) => {
      if (typeof link === 'string') return { key: link, by: null, when: null }
      if ('when' in link) return { key: link.key, by: null, when: link.when }
      return { key: link.key, by: { field: link.field, collection: link.collection }, when: null }
    }),
    lists,
    weighed: definition.weighed ?? null,
    refuse: { update: {}, delete: {}, ...definition.refuse },
    digest: definition.digest ?? 'entities',
    isPublished: definition.isPublished ?? false,
    publishedAs: definition.publishedAs ?? definition.plural,
    hasRoleFilter: definition.hasRoleFilter ?? false,
  }
}

/** The three kinds of request bodies. OpenZiti calls the PUT body `update`. */
export type RequestMode = 'create' | 'replace' | 'patch'
