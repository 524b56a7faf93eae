import { auditEntry } from '../entities/kinds/audit-entry.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import { fieldProblem } from '../lib/problems.ts'
import { historyFields, historyKinds } from '../entities/history-kinds.ts'
import { entitiesByName } from '../entities/registry.ts'
import type { AuditedChange } from '../ports/audit.ts'
import type { HistoryQuery, ListQuery, ListResult } from '../ports/state-view.ts'
import { parseAuditLine } from './records/audit-line.ts'
import type { AuditLog } from './records/audit-log.ts'
import type { State } from './records/state.ts'
import { shownLimit } from './query/collect-page.ts'
import { pageLimits, pageOf } from './query/list.ts'
import { QueryCompiler, noQueryLinks, type RecordPredicate } from './query/evaluate.ts'
import { parseQuery, parseSort } from './query/parser.ts'
import { sortComparator } from './query/symbols.ts'
import { QueryCostCounter } from './query/query-cost.ts'

export const auditQueryLimits = {
  /** Maximum number of records that one step of a query reads. */
  stepRecords: 128,
  /**
   * Number of characters of records after which a step of a query ends, because a record can have
   * more than 16,384.
   */
  stepCharacters: 32_768,
  /**
   * Maximum number of matching records that are sorted; a query with more matches fails with status
   * 400.
   */
  sortedMax: 10_000,
  /**
   * Maximum number of matching records in a list that is requested without a limit; a query with
   * more matches fails with status 400, because a client assumes that such a list is complete.
   */
  unpagedRowsMax: 10_000,
  /** Maximum number of records that have, or had, the name in a query of the history. */
  namesakesMax: 64,
} as const

/**
 * Lists the stored audit records, the newest first unless the query has another order. A query with
 * a filter or an order reads all of them, in slices.
 * @throws {Problem} INVALID_FILTER, INVALID_SORT_IDENTIFIER, COULD_NOT_VALIDATE.
 */
export async function listAudit(
  log: AuditLog,
  query: ListQuery,
  pause: () => Promise<void>,
): Promise<ListResult> {
  const wanted = wantedOf(query)
  const { test, order, page } = wanted
  if (test === null && order === null && page.limit <= pageLimits.limitMax) {
    return { records: log.page(page.offset, page.limit), ...page, totalCount: log.size }
  }
  const steps = collect(log, wanted)
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value
    await pause()
  }
}

/**
 * Lists, in steps, the stored audit records that match a query of the history; otherwise like
 * `listAudit`.
 * @throws {Problem} as `listAudit`.
 */
export function* listHistory(state: State, query: HistoryQuery): Generator<void, ListResult> {
  const { order, page, test } = wantedOf(query)
  const { record } = query
  const ids = record === undefined ? null : yield* recordIds(state, query, record)
  const quotedIds = ids === null ? null : [...ids].map((id) => JSON.stringify(id))
  const mayFit = (line: string): boolean =>
    quotedIds === null || quotedIds.some((id) => line.includes(id))
  const fits: RecordPredicate = (entry) =>
    isWanted(entry, query) &&
    (ids === null || isAbout(entry, query, ids)) &&
    (test === null || test(entry))
  return yield* collect(state.audit, { test: fits, order, page, mayFit })
}

/**
 * The changes that an audit record contains, and the number of further changes that did not fit.
 * The result is no change and the number 0 if the record contains none, for example because they
 * were too large.
 */
export function parseAuditedChanges(entry: EntityRecord): {
  readonly changes: readonly AuditedChange[]
  readonly omitted: number
} {
  const text = String(entry['change'] ?? '')
  if (!text.startsWith('[')) return { changes: [], omitted: 0 }
  const parts = JSON.parse(text) as (AuditedChange | number)[]
  const last = parts.at(-1)
  const omitted = typeof last === 'number' ? last : 0
  return { changes: parts.filter((part) => typeof part !== 'number'), omitted }
}

function tableOf(kind: unknown): string {
  return entitiesByName.get(String(kind))?.table ?? ''
}

function isWanted(entry: EntityRecord, query: HistoryQuery): boolean {
  const { tables, isOfRecords, kind, actor, action, sinceMs, untilMs } = query
  const { at, actor: by, actorName, action: done } = entry as Readonly<Record<string, unknown>>
  const table = tableOf(entry['entity'])
  // @guard history-and-undo--list
  if (tables !== null && !tables.has(table)) return false
  if (isOfRecords && !historyFields.has(table)) return false
  if (kind !== undefined && query.record === undefined && table !== tableOf(kind)) return false
  if (actor !== undefined && by !== actor && actorName !== actor) return false
  const isUpdate = action === 'update' && (done === 'patch' || done === 'replace')
  if (action !== undefined && done !== action && !isUpdate) return false
  return Number(at) >= (sinceMs ?? 0) && Number(at) <= (untilMs ?? Infinity)
}

/**
 * A test for the kinds of records in which a query searches: the kind of the query, and only kinds
 * that the reader may read. Otherwise the reader could guess names of other records, because an
 * entry about a readable record can contain them.
 */
function isSearchedIn({
  kind,
  tables,
}: Pick<HistoryQuery, 'kind' | 'tables'>): (other: unknown) => boolean {
  return (other) => {
    const table = tableOf(other)
    // @guard history-and-undo--name
    if (tables !== null && !tables.has(table)) return false
    return kind === undefined || table === tableOf(kind)
  }
}

/** Whether an entry wrote one of the records, for its caller or as a consequence. */
function isAbout(
  entry: EntityRecord,
  query: Pick<HistoryQuery, 'kind' | 'tables'>,
  ids: ReadonlySet<string>,
): boolean {
  const isOfKind = isSearchedIn(query)
  if (ids.has(String(entry['entityId'])) && isOfKind(entry['entity'])) return true
  return parseAuditedChanges(entry).changes.some(
    (change) => ids.has(change.id) && isOfKind(change.kind),
  )
}

/**
 * The ids of the records that have this name now, or had it in a stored audit record. The result
 * includes the given string itself, because it may be an id.
 */
function* recordIds(
  state: State,
  query: HistoryQuery,
  record: string,
): Generator<void, ReadonlySet<string>> {
  const ids = new Set([record])
  const isOfKind = isSearchedIn(query)
  for (const one of historyKinds) {
    const { indexes } = state.table(one)
    const owner = isOfKind(one) && indexes.isUnique('name') ? indexes.owner('name', record) : null
    if (typeof owner === 'string') ids.add(owner)
  }
  const text = JSON.stringify(record)
  const step = new QueryStep()
  for (const line of state.audit.newestLines()) {
    if (step.isFullBefore(line)) yield
    if (!line.includes(text) || ids.size >= auditQueryLimits.namesakesMax) continue
    const entry = parseAuditLine(line)
    const { entity, entityId, entityName } = entry as Readonly<Record<string, unknown>>
    if (entityName === record && isOfKind(entity)) ids.add(String(entityId))
    for (const change of parseAuditedChanges(entry).changes) {
      const names = [change.name, change.before?.['name'], change.after?.['name']]
      if (names.includes(record) && isOfKind(change.kind)) ids.add(change.id)
    }
  }
  return ids
}

/** The work of the current step of a query. */
class QueryStep {
  #records = 0
  #characters = 0

  /** Adds a record. Returns whether a new step must begin with it. */
  isFullBefore(line: string): boolean {
    const { stepRecords, stepCharacters } = auditQueryLimits
    // @guard history-and-undo--steps
    const isFull = this.#records >= stepRecords || this.#characters >= stepCharacters
    if (isFull) this.#records = this.#characters = 0
    this.#records += 1
    this.#characters += line.length
    return isFull
  }
}

interface Wanted {
  /** Test for a record; null: every record matches. */
  readonly test: RecordPredicate | null
  readonly order: ((a: EntityRecord, b: EntityRecord) => number) | null
  readonly page: { readonly limit: number; readonly offset: number }
  /**
   * Returns false if the record on this line certainly fails the test, so that the line need not be
   * parsed.
   */
  readonly mayFit?: (line: string) => boolean
}

function wantedOf(query: ListQuery): Wanted {
  const text = query.filter?.trim() ?? ''
  const parsed = text === '' ? null : parseQuery(text)
  const sort =
    parsed?.sort ?? ((query.sort ?? '').trim() === '' ? null : parseSort(query.sort ?? ''))
  const order = sort === null ? null : sortComparator(auditEntry, sort, noQueryLinks.live)
  const page = pageOf(query, parsed)
  const where = parsed?.where ?? null
  const test =
    where === null
      ? null
      : new QueryCompiler(noQueryLinks, new QueryCostCounter()).predicate(auditEntry, where)
  return { test, order, page }
}

function* collect(
  log: AuditLog,
  { test, order, page, mayFit }: Wanted,
): Generator<void, ListResult> {
  const end = page.offset + page.limit
  const kept: EntityRecord[] = []
  let totalCount = 0
  const step = new QueryStep()
  for (const line of log.newestLines()) {
    if (step.isFullBefore(line)) yield
    if (mayFit?.(line) === false) continue
    const record = parseAuditLine(line)
    if (test?.(record) === false) continue
    totalCount += 1
    if (order !== null || (totalCount > page.offset && totalCount <= end)) kept.push(record)
    if (order !== null && totalCount > auditQueryLimits.sortedMax) {
      throw fieldProblem('sort', `at most ${auditQueryLimits.sortedMax} writes are sorted; filter`)
    }
    if (page.limit > pageLimits.limitMax && kept.length > auditQueryLimits.unpagedRowsMax) {
      const { unpagedRowsMax } = auditQueryLimits
      const reason = `at most ${unpagedRowsMax} writes are listed without a limit: ask for pages, with limit and offset, or filter for less`
      throw fieldProblem('limit', reason)
    }
  }
  const { offset } = page
  const paging = { limit: shownLimit(page.limit), offset, totalCount }
  if (order === null) return { records: kept, ...paging }
  return { records: kept.sort(order).slice(offset, end), ...paging }
}
