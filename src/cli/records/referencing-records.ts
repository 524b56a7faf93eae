import type { ApiClient } from '../client/api-client.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import { allKinds, type RecordKind, kindNameInWords } from './kinds.ts'
import { toFilterLiteral, type ApiRecordRow } from './rows.ts'
import { readRows } from './read.ts'
import { rowName } from './table.ts'

const SHOWN_MAX = 10
const ROWS_MAX = 10_000

/**
 * Names of up to {@link SHOWN_MAX} records that reference this record (such as the services of a
 * config) and that a deletion would change, and a note if there are more. Omits records that the
 * caller may not read.
 */
export async function findReferencingRecordNames(
  client: ApiClient,
  kind: RecordKind,
  id: string,
): Promise<string[]> {
  const found = new Map<string, string>()
  let unread = 0
  for (const holder of allKinds()) {
    const fields = holder.fields.filter(
      ({ reference }) => reference?.shape === 'many' && reference.to === kind.id,
    )
    if (fields.length === 0 || holder.shapes.list === undefined) continue
    for (const { name } of fields) {
      const { rows, total } = await rowsWith(client, holder, name, id)
      for (const row of rows) {
        found.set(row.id, `${kindNameInWords(holder.name)} ${rowName(holder, row)}`)
      }
      unread += total - rows.length
    }
  }
  const labels = [...found.values()].sort()
  const more = labels.length + unread - SHOWN_MAX
  return more > 0 ? [...labels.slice(0, SHOWN_MAX), `${more} more`] : labels
}

async function rowsWith(
  client: ApiClient,
  kind: RecordKind,
  field: string,
  id: string,
): Promise<{ readonly rows: readonly ApiRecordRow[]; readonly total: number }> {
  const filter = `anyOf(${field}) = ${toFilterLiteral(id)}`
  try {
    return await readRows(client, kind, { filter }, SHOWN_MAX)
  } catch (error) {
    if (!(error instanceof ApiRefusal)) throw error
    // If the caller may not read these records, the deletion continues: its response also lists the
    // changed records.
    if (error.code === 'UNAUTHORIZED') return { rows: [], total: 0 }
    if (error.code !== 'INVALID_FILTER') throw error
  }
  // The API has no such filter for routers. All routers are read instead: a network has few of
  // them.
  const { rows } = await readRows(client, kind, {}, ROWS_MAX)
  const holding = rows.filter((row) => [row[field]].flat().includes(id))
  return { rows: holding, total: holding.length }
}
