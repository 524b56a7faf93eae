import { Badge } from '../../controls/status.tsx'
import { consoleApiClient } from '../../app/console-state.ts'
import { hasPermission } from '../../app/management-document.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { texts } from '../../texts.ts'
import { isObject } from './json-values.ts'
import { parseRowPage, type RecordRow } from './record-data.ts'
import { StateBadge } from './record-state.tsx'

/** The terminators of a service, and how many of them are at a router that is online. */
export interface HostCount {
  readonly online: number
  readonly all: number
}

const ROWS_MAX = 500

/**
 * Hosts of services, by the id of the service. Null if the caller may not read them, or if there
 * are more than one response contains.
 */
export async function readHostCounts(
  serviceIds: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, HostCount> | null> {
  if (serviceIds.length === 0 || !hasPermission('terminator.read')) return null
  const read = async (path: string, filter: string) => {
    const query = new URLSearchParams({ limit: String(ROWS_MAX), filter })
    return parseRowPage(
      (await consoleApiClient.ask({ path: `${MANAGEMENT_API_PATH}/${path}?${query}`, signal }))
        .body,
    )
  }
  const ids = serviceIds.map((id) => JSON.stringify(id)).join(', ')
  const [terminators, offline] = await Promise.all([
    read('terminators', `service in [${ids}]`),
    hasPermission('router.read') ? read('routers', 'connected = false') : null,
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

/** Whether a service can be reached at its hosts, in a few words; nothing if that is not known. */
export function HostState({ row }: { readonly row: Readonly<Record<string, unknown>> }) {
  const { hosts } = row
  if (!isObject(hosts)) return null
  const { online, all } = hosts as unknown as HostCount
  if (all === 0) return <StateBadge state="noHost" />
  if (online === 0) return <StateBadge state="hostsOffline" />
  return <Badge tone={online === all ? 'good' : 'warn'}>{texts.cell.hosted(online, all)}</Badge>
}
