import { auditEntry } from '../entities/kinds/audit-entry.ts'
import type { EntityRecord } from '../lib/entity-record.ts'
import { fieldProblem } from '../lib/problems.ts'
import type { ListQuery, ListResult } from '../ports/state-view.ts'
import type { AuditLog } from './records/audit-log.ts'
import { pageLimits } from './query/list.ts'
import { Compiler, noLinks, type Predicate } from './query/evaluate.ts'
import { parseQuery, parseSort } from './query/parser.ts'
import { sortComparator } from './query/symbols.ts'
import { QueryWork } from './query/work.ts'

export const auditQueryLimits = {
  /** Records that are read between two turns of the event loop. */
  sliceRecords: 1000,
  /**
   * Maximum number of matching records that are sorted; beyond it the query is answered with 400.
   */
  sortedMax: 10_000,
} as const

/**
 * Lists the kept audit records, the newest first unless the query has another order. Reads all of
 * them, in slices.
 * @throws {Problem} INVALID_FILTER, INVALID_SORT_IDENTIFIER, COULD_NOT_VALIDATE.
 */
export async function listAudit(
  log: AuditLog,
  query: ListQuery,
  pause: () => Promise<void>,
): Promise<ListResult> {
  const text = query.filter?.trim() ?? ''
  const parsed = text === '' ? null : parseQuery(text)
  const sort =
    parsed?.sort ?? ((query.sort ?? '').trim() === '' ? null : parseSort(query.sort ?? ''))
  const order = sort === null ? null : sortComparator(auditEntry, sort, noLinks.live)
  const asked = typeof parsed?.limit === 'number' ? parsed.limit : query.limit
  const limit = asked === undefined || asked < 1 ? pageLimits.limitDefault : asked
  const page = {
    limit: Math.min(limit, pageLimits.limitMax),
    offset: Math.min(Math.max(0, parsed?.skip ?? query.offset ?? 0), pageLimits.offsetMax),
  }
  const where = parsed?.where ?? null
  if (where === null && order === null) {
    return { records: log.page(page.offset, page.limit), ...page, totalCount: log.size }
  }
  const test: Predicate =
    where === null
      ? () => true
      : new Compiler(noLinks, new QueryWork()).predicate(auditEntry, where)
  return await collect(log, { test, order, page }, pause)
}

interface Wanted {
  readonly test: Predicate
  readonly order: ((a: EntityRecord, b: EntityRecord) => number) | null
  readonly page: { readonly limit: number; readonly offset: number }
}

async function collect(
  log: AuditLog,
  { test, order, page }: Wanted,
  pause: () => Promise<void>,
): Promise<ListResult> {
  const end = page.offset + page.limit
  const kept: EntityRecord[] = []
  let [seen, totalCount] = [0, 0]
  for (const record of log.newestFirst()) {
    seen += 1
    if (seen % auditQueryLimits.sliceRecords === 0) await pause()
    if (!test(record)) continue
    totalCount += 1
    if (order !== null || (totalCount > page.offset && totalCount <= end)) kept.push(record)
    if (order !== null && totalCount > auditQueryLimits.sortedMax) {
      throw fieldProblem('sort', `at most ${auditQueryLimits.sortedMax} writes are sorted; filter`)
    }
  }
  if (order === null) return { records: kept, ...page, totalCount }
  return { records: kept.sort(order).slice(page.offset, end), ...page, totalCount }
}
