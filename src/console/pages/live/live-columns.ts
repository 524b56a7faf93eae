import type { LiveDataRow } from './live-row.ts'

/** Columns that say nothing about a row if all rows have the same value, or none has one. */
const quietColumns: ReadonlySet<string> = new Set(['ipAddress', 'method', 'type', 'edgeRouters'])

/** The columns to show, and those to leave out because they say nothing about a row. */
export function differingColumns(
  rows: readonly LiveDataRow[],
  columns: readonly string[],
): { readonly shown: readonly string[]; readonly same: readonly string[] } {
  const same = columns.filter((column) => {
    if (!quietColumns.has(column)) return false
    if (rows.every((row) => row[column] === undefined)) return true
    return rows.length > 1 && new Set(rows.map((row) => JSON.stringify(row[column]))).size === 1
  })
  return { shown: columns.filter((column) => !same.includes(column)), same }
}
