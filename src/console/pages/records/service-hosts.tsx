import { Badge } from '../../controls/status.tsx'
import { hasPermission } from '../../app/management-document.ts'
import { texts } from '../../texts.ts'
import { isObject } from './json-values.ts'
import { readRows, type RecordRow } from './record-data.ts'
import { recordStates, type ShownState } from './record-state.tsx'

/** The number of terminators of a service. */
export interface HostCount {
  /** At a router that is online, or of which the user may not read the state. */
  readonly online: number
  readonly all: number
}

/**
 * Hosts of services, by the ID of the service. Null without a service, if the caller may not read
 * terminators, or if there are more terminators or offline routers than one response contains.
 */
export async function readHostCounts(
  serviceIds: readonly string[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, HostCount> | null> {
  if (serviceIds.length === 0 || !hasPermission('terminator.read')) return null
  const ids = serviceIds.map((id) => JSON.stringify(id)).join(', ')
  const [terminators, offline] = await Promise.all([
    readRows('terminators', `service in [${ids}]`, signal),
    hasPermission('router.read') ? readRows('routers', 'connected = false', signal) : null,
  ])
  if (terminators.totalCount > terminators.rows.length) return null
  if (offline !== null && offline.totalCount > offline.rows.length) return null
  const down = new Set(offline?.rows.map(({ id }) => id))
  const counts = new Map(serviceIds.map((id) => [id, { online: 0, all: 0 }]))
  for (const { serviceId, routerId } of terminators.rows as readonly RecordRow[]) {
    const count = counts.get(String(serviceId))
    if (count === undefined) continue
    count.all += 1
    if (!down.has(String(routerId))) count.online += 1
  }
  return counts
}

/** Whether a service can be reached at its hosts, in a few words; null if that is not known. */
export function hostState({ hosts }: Readonly<Record<string, unknown>>): ShownState | null {
  if (!isObject(hosts)) return null
  const { online, all } = hosts as unknown as HostCount
  if (all === 0) return recordStates.noHost
  if (online === 0) return recordStates.hostsOffline
  // One offline host of several needs no warning here, because Home lists failed routers. A service
  // is at risk once more than half of its hosts, or all but one, are offline.
  const isSafe = online === all || (online > 1 && online * 2 >= all)
  return { tone: isSafe ? 'good' : 'warn', word: texts.cell.hosted(online, all) }
}

export function HostState({ row }: { readonly row: Readonly<Record<string, unknown>> }) {
  const state = hostState(row)
  return state === null ? null : <Badge tone={state.tone}>{state.word}</Badge>
}
