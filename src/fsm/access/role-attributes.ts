import { defineEntity, type Entity } from '../../entities/define-entity.ts'
import { entities } from '../../entities/registry.ts'
import type { KindName } from '../../entities/kind-names.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { compareText } from '../../lib/text/text-order.ts'
import type { ListQuery, ListResult } from '../../ports/state-view.ts'
import { digestLanes } from '../records/digest.ts'
import { noQueryLinks } from '../query/evaluate.ts'
import { RecordLister } from '../query/list.ts'
import { idsWithinScope } from '../records/roles.ts'
import type { IdScope } from '../records/sorted-ids.ts'
import { Table } from '../records/table.ts'
import type { State } from '../records/state.ts'

type Page = Pick<ListResult, 'limit' | 'offset' | 'totalCount'>

/**
 * A page of role attributes; the page contains all of them if neither the parameters nor the filter
 * contain a limit.
 */
export interface RoleAttributes extends Page {
  readonly attributes: readonly string[]
}

export interface RoleCountQuery {
  readonly prefix: string
  readonly limit: number
  readonly offset: number
}

/** One page of role attributes in alphabetical order, with the number of records for each. */
export interface RoleCounts {
  readonly rows: readonly { readonly attribute: string; readonly count: number }[]
  readonly totalCount: number
}

/**
 * A page of role attributes, each with the records that have it and the policies that use it: ids
 * by the plural name of their kind. Kinds that the reader may not read are absent.
 */
export interface RoleAttributeUsage extends Page {
  readonly rows: readonly {
    readonly roleAttribute: string
    readonly usage: Readonly<Record<string, readonly string[]>>
  }[]
}

/** Descriptor of the rows in a list of role attributes. These rows are not stored. */
const rows = defineEntity({
  name: 'roleAttribute',
  plural: 'roleAttributes',
  operations: {},
  fields: {},
  symbols: [],
})
/**
 * In filters and sort orders, both `id` and `name` mean the attribute; OpenZiti's console sorts by
 * `name`.
 */
const shownSymbols: Entity<string> = {
  ...rows,
  symbols: rows.symbols.flatMap((symbol) =>
    symbol.name === 'id' ? [symbol, { ...symbol, name: 'name' }] : [],
  ),
}
const lister = new RecordLister(noQueryLinks)
/** No digest contains these rows, because they are not replicated. */
const noLanes = digestLanes('', '')

export const roleAttributeFields: readonly string[] = shownSymbols.symbols.map(({ name }) => name)

/** A page of the attributes; without a limit, it contains all attributes. */
function pageOf(attributes: Iterable<string>, query: ListQuery): RoleAttributes {
  const table = new Table(shownSymbols)
  for (const id of attributes) {
    const record: EntityRecord = { id, createdAt: 0, updatedAt: 0, revision: 0 }
    table.change(id, { record, lanes: noLanes })
  }
  const asked = { ...query, limit: query.limit ?? -1 }
  const { records, limit, offset, totalCount } = lister.list(table, asked, null)
  return { attributes: records.map(({ id }) => id), limit, offset, totalCount }
}

/** Ids of the records of a kind that have the attribute. */
function holders(state: State, kind: Entity, within: IdScope | null, name: string): string[] {
  const ids = [...state.table(kind.name).indexes.ids('roleAttributes', name)]
  return within === null ? ids : ids.filter((id) => within.has(id))
}

function* heldAttributes(state: State, kind: Entity): Iterable<string> {
  const table = state.table(kind.name)
  const within = idsWithinScope(table, kind)
  for (const name of table.indexes.elements('roleAttributes')) {
    if (within === null || holders(state, kind, within, name).length > 0) yield name
  }
}

/** A page of the role attributes that records of the kind have, with the total number. */
export function listRoleAttributes(state: State, kind: Entity, query: ListQuery): RoleAttributes {
  return pageOf(heldAttributes(state, kind), query)
}

/** Number of attributes after which `countRoles` yields, so that other work can run. */
const turnAttributes = 2000

/**
 * Role attributes with a prefix, and the number of records that have each. Yields after each slice
 * of work, so that other work can run.
 */
export function* countRoles(
  state: State,
  kind: Entity,
  { prefix, limit, offset }: RoleCountQuery,
): Generator<void, RoleCounts> {
  const found: string[] = []
  let looked = 0
  for (const attribute of heldAttributes(state, kind)) {
    if (attribute.startsWith(prefix)) found.push(attribute)
    looked += 1
    if (looked % turnAttributes === 0) yield
  }
  found.sort(compareText)
  const within = idsWithinScope(state.table(kind.name), kind)
  const rows = found.slice(offset, offset + limit).map((attribute) => ({
    attribute,
    count: holderCount(state, kind, within, attribute),
  }))
  return { rows, totalCount: found.length }
}

function holderCount(state: State, kind: Entity, within: IdScope | null, name: string): number {
  if (within !== null) return holders(state, kind, within, name).length
  return state.table(kind.name).indexes.ids('roleAttributes', name).size
}

/** Policy kinds that have a role list for the kind, each with the name of that list. */
function naming(kind: Entity): readonly (readonly [Entity, string])[] {
  return entities.flatMap((entity) =>
    Object.entries(entity.fields)
      .filter(([, field]) => field.kind === 'roleList' && field.reference?.to === kind.name)
      .map(([name]) => [entity, name] as const),
  )
}

/**
 * A page of the role attributes that records have or that policies use, with these records and
 * policies.
 * @param mayRead false for a kind of policies that the result must not contain.
 */
export function listRoleAttributeUsage(
  state: State,
  kind: Entity,
  query: ListQuery,
  mayRead: (policies: KindName) => boolean,
): RoleAttributeUsage {
  // @guard policies-behind-role-attributes
  const policies = naming(kind).filter(([policy]) => mayRead(policy.name))
  const names = new Set(heldAttributes(state, kind))
  for (const [policy, field] of policies) {
    for (const role of state.table(policy.name).indexes.elements(field)) {
      if (role.startsWith('#') && role !== '#all') names.add(role.slice(1))
    }
  }
  const { attributes, ...page } = pageOf(names, query)
  const within = idsWithinScope(state.table(kind.name), kind)
  return {
    ...page,
    rows: attributes.map((roleAttribute) => ({
      roleAttribute,
      usage: {
        [kind.plural]: holders(state, kind, within, roleAttribute),
        // `#all` in a policy selects all records and is no role attribute, even if records have an
        // attribute named `all`.
        ...Object.fromEntries(
          policies.map(([policy, field]) => {
            const role = `#${roleAttribute}`
            const ids = role === '#all' ? [] : state.table(policy.name).indexes.ids(field, role)
            return [policy.plural, [...ids]]
          }),
        ),
      },
    })),
  }
}
