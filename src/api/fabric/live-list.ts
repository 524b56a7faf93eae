import type { Entity } from '../../entities/define-entity.ts'
import type { KindName } from '../../entities/kind-records.ts'
import { digestLanes } from '../../fsm/records/digest.ts'
import { noQueryLinks } from '../../fsm/query/evaluate.ts'
import { RecordLister } from '../../fsm/query/list.ts'
import { symbolNames } from '../../fsm/query/symbols.ts'
import { Table } from '../../fsm/records/table.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { SteppedListing, StateView } from '../../ports/state-view.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Reply } from '../http/responses/envelope.ts'
import {
  createRowSerializer,
  type ListResponseSerializer,
} from '../http/responses/list-response-serializer.ts'
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

/** Number of rows that one step adds to the table of a list. */
const STEP_ROWS = 128

/**
 * Lists rows that are not stored, with the same query language as other lists. A controller can
 * have 200,000 circuits, so the list is made in steps.
 */
export function liveListResponse<T>(
  lists: ListResponseSerializer,
  call: RequestContext,
  all: readonly T[],
  options: LiveListOptions<T>,
): Reply | Promise<Reply> {
  const { rows, viewOf } = options
  const byId = new Map<string, T>()
  return lists.found(call, listing(call, all, options, byId), ({ records, ...pagination }) => ({
    records: records.flatMap(({ id }) => byId.get(id) ?? []),
    serialize: createRowSerializer(viewOf),
    pagination,
    filterableFields: symbolNames(rows),
  }))
}

function* listing<T>(
  call: RequestContext,
  all: readonly T[],
  { rows, fieldsOf }: LiveListOptions<T>,
  byId: Map<string, T>,
): SteppedListing {
  const table = new Table(rows)
  for (const [at, each] of all.entries()) {
    // @guard whole-list-keeps-others-waiting--live
    if (at % STEP_ROWS === STEP_ROWS - 1) yield
    const fields = fieldsOf(each)
    byId.set(fields.id, each)
    table.change(fields.id, { record: table.shape(fields, 1), lanes: noLanes })
  }
  return yield* lister.listing(table, readListQuery(call), null)
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
