import { csvText } from '../../app/csv.ts'
import type { ListState } from './filters.ts'
import { type Draft, isObject } from './json-values.ts'
import { certificateEnd } from './certificate-end.ts'
import type { ConsoleKind } from './kinds.ts'
import { listFacets } from './list-facets.ts'
import { readsRelated, withRelated } from './list-relations.ts'
import { configTypeUse, postureRequirement } from './record-cell.tsx'
import { readRowPage, type RecordRow, type RowPage } from './record-data.ts'
import { hostState } from './service-hosts.tsx'

const PAGE = 500
/**
 * Rows of a request for a list that relates its rows to other records: few enough for the answer
 * about the others to contain all of them, and for their IDs to fit into a filter.
 */
const RELATED_PAGE = 90
/** Maximum rows of an export; limited, because the browser keeps them in memory. */
export const EXPORTED_ROWS_MAX = 100_000

/**
 * Fields whose values would let a reader of the file enroll or log in. Exports omit them, and no
 * column shows them.
 */
export const secretMemberNames: ReadonlySet<string> = new Set([
  'jwt',
  'token',
  'enrollmentJwt',
  'enrollmentToken',
])

/** Rows of a list from this offset, with its filter and order. */
export async function readExportedPage(
  kind: ConsoleKind,
  state: ListState,
  fields: readonly string[],
  offset: number,
): Promise<RowPage> {
  const range = { limit: readsRelated(kind) ? RELATED_PAGE : PAGE, offset }
  const page = await readRowPage(kind.path, state, fields, range, undefined, listFacets(kind))
  return await withRelated(kind, page)
}

export function rowsAsJson(rows: readonly RecordRow[]): string {
  return `${JSON.stringify(rows.map(exported), null, 2)}\n`
}

export function rowsAsCsv(rows: readonly RecordRow[], columns: readonly string[]): string {
  // In the list, the column `onlineSince` also shows `offlineSince`; in the file, each has its own
  // column.
  const since = columns.includes('onlineSince') ? ['offlineSince'] : []
  const names = ['id', 'name', ...columns, ...since, 'createdAt', 'updatedAt']
  return csvText([names, ...rows.map((row) => names.map((name) => fieldText(row, name)))])
}

/** Columns of a list that are not fields of the record, as text. */
const columnTexts: Readonly<Record<string, (row: Draft) => string>> = {
  certificateEnd: ({ certPem }) => certificateEnd(certPem) ?? '',
  hosts: (row) => hostState(row)?.word ?? '',
  requires: postureRequirement,
  use: ({ name }) => configTypeUse(name),
}

/**
 * A field as text. For roles of policies, it uses the names of records, which the API returns
 * beside the ids.
 */
function fieldText(row: Draft, name: string): string {
  const computed = columnTexts[name]
  if (computed !== undefined) return computed(row)
  const display = row[`${name}Display`]
  return valueText(Array.isArray(display) && display.length > 0 ? display : row[name])
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) return value.map(valueText).join(' ')
  if (!isObject(value)) return String(value)
  const { name, id } = value
  if (typeof name === 'string') return name
  return typeof id === 'string' ? id : JSON.stringify(exported(value))
}

function exported(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(exported)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== '_links' && !secretMemberNames.has(name))
      .map(([name, inner]) => [name, exported(inner)]),
  )
}
