import type { Lanes } from '../fsm/digest.ts'
import type { State } from '../fsm/state.ts'

/** What of one kind a restore would change. */
export interface KindChanges {
  readonly kind: string
  /** In the backup alone. */
  readonly created: number
  readonly changed: number
  /** In the live state alone. */
  readonly deleted: number
  /** Of each of the three the first ids in their order, at most so many as are shown. */
  readonly ids: Readonly<Record<'created' | 'changed' | 'deleted', readonly string[]>>
}

const SHOWN_IDS_MAX = 20
/** Of the controllers alone: a restore makes all of them anew. */
const NOT_RESTORED: ReadonlySet<string> = new Set(['admission', 'joinTicket', 'sharedSecret'])

/** What a restore of `backup` would change of `live`, kind by kind; those that stay as they are are left out. */
export function changesBetween(live: State, backup: State): KindChanges[] {
  const found: KindChanges[] = []
  for (const [name, { entity, rows }] of live.tables) {
    if (entity.name !== name || NOT_RESTORED.has(name)) continue
    const restored = backup.table(name).rows
    const deleted = [...rows.keys()].filter((id) => !restored.has(id))
    const created = [...restored.keys()].filter((id) => !rows.has(id))
    const changed = [...restored].flatMap(([id, row]) => {
      const before = rows.get(id)
      return before === undefined || isSame(before.lanes, row.lanes) ? [] : id
    })
    if (created.length + changed.length + deleted.length === 0) continue
    found.push({
      ...{ kind: name, created: created.length, changed: changed.length, deleted: deleted.length },
      ids: { created: shown(created), changed: shown(changed), deleted: shown(deleted) },
    })
  }
  return found
}

/** Equal records have equal lanes, and others do not, short of a broken SHA-256. */
function isSame(a: Lanes, b: Lanes): boolean {
  return a.a === b.a && a.b === b.b && a.c === b.c && a.d === b.d
}

function shown(ids: string[]): string[] {
  return ids.sort().slice(0, SHOWN_IDS_MAX)
}
