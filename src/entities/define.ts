import { assert } from '../lib/assert.ts'
import type { BaseFields, EntityRecord } from '../lib/entity-record.ts'
import type { ProblemCode } from '../lib/problems.ts'
import {
  type ComputedField,
  type Condition,
  type Field,
  fieldLimits,
  type FieldOf,
  map,
  type FilterFact,
} from './fields.ts'
import type { KindName } from './kind-names.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { type DecidedFields, published } from './published.ts'

export type EntityApi = 'client' | 'management' | 'fabric'
export type OperationShape = 'list' | 'create' | 'detail' | 'replace' | 'patch' | 'delete'

/** Types of the filter language. `any` takes the type of the literal it is compared with. */
export type SymbolType = 'string' | 'number' | 'boolean' | 'datetime' | 'any' | 'stringSet'

/**
 * A name that a filter may use. `path` selects a member of the record; `list` means the ids of that
 * sub-list.
 */
export interface FilterSymbol {
  readonly name: string
  /** Type; `any` for a symbol `through` another record until that record's symbol is known. */
  readonly type: SymbolType
  readonly path: readonly string[]
  /**
   * A live fact that is in no record and changes without a log entry; null for every other symbol.
   */
  readonly live: FilterFact | null
  readonly list: string | null
  /** Kind of the records that the field references; null for every other symbol. */
  readonly of: KindName | null
  /** Symbol of the referenced record that is read instead of its id. */
  readonly through: string | null
  /** Values that a filter may also give by number, counted from 1; null for every other symbol. */
  readonly numbered: readonly string[] | null
}

/** A sub-list: records of the kind `of`, under `/{collection}/{id}/{path}`. */
export interface SubList {
  readonly of: KindName
  /**
   * API that serves the list. On the client API, a caller sees only records that its policies
   * reach.
   */
  readonly api: EntityApi
  /** Path segment and, by default, the key. */
  readonly path: string
  /**
   * `roles`: records matched by this record's role list `by`. `policies`: records of kind `of`
   * whose role list `by` matches this record. `access`: records connected with this one through
   * service policies. `policyLinks`: records that policies of kind `by` link with this one.
   * `named`: records referenced by this record's field `by`. `naming`: records of kind `of` whose
   * field `by` references this record.
   */
  readonly through: 'roles' | 'policies' | 'access' | 'policyLinks' | 'named' | 'naming'
  readonly by: string | null
  /** Operation id, if it is not `list<Kind><Listed kinds>`. */
  readonly operationId: string | null
  /** Answer for a parent that does not exist. */
  readonly unknownParent: 'notFound' | 'empty'
  /**
   * Kind whose members the API contract declares for the rows; members that only it has are
   * declared but never sent.
   */
  readonly declaredAs: KindName | null
}

/**
 * A member of request bodies that no field takes unchanged; code converts it when the body becomes
 * a command.
 */
export interface BodyMember {
  readonly schema: JsonObject
  readonly in: readonly RequestMode[]
  readonly requiredIn: readonly RequestMode[]
}

/** A link of `_links` beside `self`: `<self>/<key>`, or the record that the field `by` names. */
export interface EntityLink {
  readonly key: string
  readonly by: { readonly field: string; readonly collection: string } | null
  /** null: for every record. */
  readonly when: Condition | null
}

/**
 * Selects the records of a table that belong to a kind: those whose indexed boolean field has this
 * value.
 */
interface FieldScope {
  readonly field: string
  readonly value: boolean
}

/**
 * Records of a kind that a client API caller may see. `access`: services that its service policies
 * reach. `reference`: records that reference the caller by the field `by`.
 */
export type CallerScope<By = string> =
  | { readonly through: 'access' }
  | { readonly through: 'reference'; readonly by: By }

/**
 * A descriptor without static types, as interpreters read it. Its name is that of a kind, or of
 * rows without a table that can be listed like records: `Entity<string>` may be either.
 */
export interface Entity<N extends string = KindName> {
  /** Singular, camel case: `servicePolicy`. Also the kind's name in commands, keys and messages. */
  readonly name: N
  /** `servicePolicies`. */
  readonly plural: string
  /**
   * The kind that stores the records: this kind, or another kind of which it is a view with its own
   * operations and fields. The storing kind has every stored field of its views; ids, names and
   * references are shared.
   */
  readonly table: N | KindName
  /** null: every record of the table. A record created as this kind is in its scope. */
  readonly scope: FieldScope | null
  /** Feature level that introduced the kind; below it there are no records of it. */
  readonly since: number
  /** Path and `entity` of an EntityRef: `service-policies`. */
  readonly collection: string
  /** Operations served per API, with the permission each needs. */
  readonly operations: Readonly<
    Partial<Record<EntityApi, Readonly<Partial<Record<OperationShape, string>>>>>
  >
  /** null: not visible on the client API. */
  readonly callerScope: CallerScope | null
  readonly operationIds: Readonly<Partial<Record<OperationShape, string>>>
  /**
   * Statuses of refusals that the contract declares in addition to those of the operation's shape.
   */
  readonly refusals: Readonly<Partial<Record<OperationShape, readonly number[]>>>
  /** Member of a create body that becomes the id; null: a new id is generated. */
  readonly idFrom: string | null
  readonly fields: Readonly<Record<string, Field>>
  /** Names of `fields`, sorted. */
  readonly fieldNames: readonly string[]
  readonly body: Readonly<Record<string, BodyMember>>
  /** Additional query parameters of the list, per API. */
  readonly listParameters: Readonly<Partial<Record<EntityApi, readonly string[]>>>
  /** Indexed fields: their values (elements, map keys) lead to records without a scan. */
  readonly indexes: readonly string[]
  readonly symbols: readonly FilterSymbol[]
  readonly links: readonly EntityLink[]
  readonly lists: Readonly<Record<string, SubList>>
  /**
   * Sums the bytes of a map over the records of one owner, so that the total per owner can be
   * limited.
   */
  readonly weighed: { readonly field: string; readonly by: string } | null
  /** A true boolean field of the record refuses the operation with this code. */
  readonly refuse: {
    readonly update: Readonly<Record<string, ProblemCode>>
    readonly delete: Readonly<Record<string, ProblemCode>>
  }
  /** `entities`: visible to clients, in both digests. `state`: only in the state digest. */
  readonly digest: 'entities' | 'state'
  /** Whether events report changes of its records. */
  readonly isPublished: boolean
  /** Type of its records in these events. */
  readonly publishedAs: string
  /** Whether the list accepts roleFilter and roleSemantic over `roleAttributes`. */
  readonly hasRoleFilter: boolean
}

interface TagsField {
  readonly tags: FieldOf<Readonly<Record<string, string | number | boolean | null>>>
}
type Fields = Readonly<Record<string, Field>>
type StoredKey<F> = {
  [K in keyof F]: F[K] extends ComputedField ? never : K
}[keyof F]
type TypeOf<F> = F extends FieldOf<infer T> ? T : never

/** The record type of a descriptor. */
export type EntityOf<D> = D extends { readonly types?: infer F }
  ? {
      readonly [K in keyof BaseFields | StoredKey<NonNullable<F>>]: K extends keyof BaseFields
        ? BaseFields[K]
        : TypeOf<NonNullable<F>[K & keyof NonNullable<F>]>
    }
  : never

/** A record that was never written and is in no table: every field has its zero value. */
export function unsetRecord<D extends Pick<Entity<string>, 'fields'>>(
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
      readonly live: FilterFact
      readonly type: SymbolType
    }
  | { readonly name: string; readonly list: string }
  /**
   * For example `service.name`: the symbol of the record of kind `of` that the field references.
   * Not sortable.
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
 * A kind with client API operations must state which records its callers see, or it does not
 * compile.
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
 * A kind with its own table states whether events report its records. If they do, each stored field
 * states whether events show it, or it does not compile.
 */
type Publication<N extends string, F> = N extends KindName
  ?
      | { readonly table: KindName; readonly isPublished?: never; readonly publishedAs?: never }
      | { readonly table?: never; readonly isPublished: false; readonly publishedAs?: never }
      | {
          readonly table?: never
          readonly isPublished: true
          /** Type of its records in events, if it is not the plural. */
          readonly publishedAs?: string
          readonly fields: F & DecidedFields
        }
  : { readonly table?: never; readonly isPublished?: never; readonly publishedAs?: never }

type Definition<N extends string, F extends Fields> = Served<F> &
  Publication<N, F> &
  DefinitionBase<N, F>

interface DefinitionBase<N extends string, F extends Fields> {
  readonly name: N
  readonly plural: string
  /**
   * Collection, if it is not the plural in kebab case, for a view that another API serves under the
   * name of its table.
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
  /** Further indexes; references and unique fields are always indexed. */
  readonly indexes?: readonly SymbolName<F>[]
  readonly symbols: readonly SymbolInput<F>[]
  readonly links?: readonly (
    | string
    | { readonly key: string; readonly field: SymbolName<F>; readonly collection: string }
    | { readonly key: string; readonly when: Condition & { readonly field: SymbolName<F> } }
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

/** A symbol that is read from the record itself. */
function stored(name: string, type: SymbolType, path: readonly string[]): FilterSymbol {
  return { name, type, path, live: null, list: null, of: null, through: null, numbered: null }
}

/** Symbols of every kind; `tags` accepts sub-keys. */
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

/** Whether a record is of this kind, which may share its table with others. */
export function isInScope({ scope }: Pick<Entity, 'scope'>, record: EntityRecord): boolean {
  return scope === null || (record[scope.field] === true) === scope.value
}

/** `servicePolicies` → `service-policies`. */
export function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/**
 * Defines a kind of record as data, for all interpreters. Field names are checked at compile time.
 * Every kind also has `tags`.
 */
export function defineEntity<const N extends string, const F extends Fields>(
  definition: Definition<N, F>,
): Entity<N> & { readonly types?: F & TagsField } {
  const tags = map({ bytesMax: fieldLimits.tagsBytesMax })
  const fields: Fields = { ...definition.fields, ...published({ tags }) }
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
    collection: definition.collection ?? kebab(definition.plural),
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

/** The three request bodies of a kind. OpenZiti calls the PUT body `update`. */
export type RequestMode = 'create' | 'replace' | 'patch'
