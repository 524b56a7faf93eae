import type { Entity } from '../../entities/define-entity.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { digestLanes } from '../../fsm/records/digest.ts'
import { noQueryLinks } from '../../fsm/query/evaluate.ts'
import { RecordLister } from '../../fsm/query/list.ts'
import { symbolNames } from '../../fsm/query/symbols.ts'
import { Table } from '../../fsm/records/table.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { RequestContext } from '../http/request-context.ts'
import { listResponse, type Reply } from '../http/responses/envelope.ts'
import { readListQuery } from '../http/query-parameters.ts'

const lister = new RecordLister(noQueryLinks)
/** State digests do not include live rows, because these rows are not replicated. */
const noLanes = digestLanes('', '')

/** How rows of a live table are filtered and shown. */
export interface LiveListOptions<T> {
  /** Symbols by which rows can be filtered and sorted. */
  readonly rows: Entity<string>
  /** The fields of a row, including `id`. */
  readonly fieldsOf: (each: T) => Readonly<Record<string, Json>> & { readonly id: string }
  readonly viewOf: (each: T) => object
}

/** Lists rows that are not stored, with the same query language as other lists. */
export function liveListResponse<T>(
  call: RequestContext,
  all: readonly T[],
  { rows, fieldsOf, viewOf }: LiveListOptions<T>,
): Reply {
  const table = new Table(rows)
  const byId = new Map<string, T>()
  for (const each of all) {
    const fields = fieldsOf(each)
    byId.set(fields.id, each)
    table.change(fields.id, { record: table.shape(fields, 1), lanes: noLanes })
  }
  const { records, ...page } = lister.list(table, readListQuery(call), null)
  const shown = records.flatMap(({ id }) => {
    const each = byId.get(id)
    return each === undefined ? [] : [viewOf(each)]
  })
  return listResponse(shown, page, symbolNames(rows))
}

/**
 * Reference to a record that a live row names.
 * @param kind null if the referenced thing has no record. Without a record or a name, the id is
 * shown as the name.
 */
export function liveEntityReference(
  state: StateView,
  kind: KindName | null,
  collection: string,
  id: string,
): object {
  const name = kind === null ? undefined : state.get(kind, id)?.['name']
  return {
    _links: { self: { href: `./${collection}/${id}` } },
    entity: collection,
    id,
    name: typeof name === 'string' ? name : id,
  }
}
