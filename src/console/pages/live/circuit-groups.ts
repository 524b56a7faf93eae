import { pathRouters } from './circuit-path.ts'
import type { LiveDataRow } from './live-row.ts'

/** Circuits of one client to one service over the same path, the newest first. */
export interface CircuitGroup {
  readonly key: string
  readonly newest: LiveDataRow
  readonly rows: readonly LiveDataRow[]
}

/** Groups circuits that differ only in their time, and sorts them by that time, newest first. */
export function groupCircuits(rows: readonly LiveDataRow[]): readonly CircuitGroup[] {
  const groups = new Map<string, LiveDataRow[]>()
  for (const row of [...rows].sort(byOpening)) {
    const { clientId, service, path, hostId } = row
    const serviceId = (service as { readonly id?: unknown } | null | undefined)?.id
    const key = JSON.stringify([clientId, serviceId, pathRouters(path).map(({ id }) => id), hostId])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [row])
    else group.push(row)
  }
  return [...groups].flatMap(([key, members]) => {
    const [newest] = members
    return newest === undefined ? [] : [{ key, newest, rows: members }]
  })
}

/** The ID decides between circuits of the same moment, so that their order never changes. */
function byOpening(a: LiveDataRow, b: LiveDataRow): number {
  const [x, y] = [String(a['createdAt']), String(b['createdAt'])]
  if (x === y) return a.id < b.id ? -1 : 1
  return x < y ? 1 : -1
}
