import type { ApiClient } from '../client/api-client.ts'
import { ApiRefusal } from '../client/refusal.ts'
import { allKinds, type Kind, kindWords } from './kinds.ts'
import { filterText } from './names.ts'
import { readRows } from './read.ts'
import { rowName } from './table.ts'

const SHOWN_MAX = 10

/**
 * Names records that list this record, such as the services of a config. A deletion would take it
 * off them. Leaves out those that the caller may not read.
 */
export async function holdersOf(client: ApiClient, kind: Kind, id: string): Promise<string[]> {
  const found = new Map<string, string>()
  for (const holder of allKinds()) {
    const fields = holder.fields.filter(
      ({ reference }) => reference?.shape === 'many' && reference.to === kind.id,
    )
    if (fields.length === 0 || holder.shapes.list === undefined) continue
    for (const { name } of fields) {
      const filter = `anyOf(${name}) = ${filterText(id)}`
      for (const label of await labelsOf(client, holder, filter)) found.set(label.id, label.text)
    }
  }
  const labels = [...found.values()].sort()
  const more = labels.length - SHOWN_MAX
  return more > 0 ? [...labels.slice(0, SHOWN_MAX), `${more} more`] : labels
}

interface Label {
  readonly id: string
  readonly text: string
}

async function labelsOf(client: ApiClient, kind: Kind, filter: string): Promise<Label[]> {
  try {
    const { rows } = await readRows(client, kind, { filter }, SHOWN_MAX + 1)
    return rows.map((row) => ({
      id: row.id,
      text: `${kindWords(kind.name)} ${rowName(kind, row)}`,
    }))
  } catch (error) {
    // The answer to the deletion still names what it changed.
    if (error instanceof ApiRefusal && ['UNAUTHORIZED', 'INVALID_FILTER'].includes(error.code)) {
      return []
    }
    throw error
  }
}
