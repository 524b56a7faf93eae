import { consoleApiClient, clusterMembers } from '../../app/console-state.ts'
import { FABRIC_API_PATH, MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { OWN_DATA_TIMEOUT_MS } from '../../../client/timeouts.ts'

import type { LiveDataRow } from './live-row.ts'
import { markOffline } from './circuit-path.ts'
import { hasEndedBefore } from './end-rows.ts'
import { readOfflineRouterIds, withHosts, withLogInMethods } from './live-relations.ts'

export type { LiveDataRow } from './live-row.ts'

/** Rows of sessions, or of links or circuits from all controllers that responded. */
export interface LiveDataRows {
  readonly rows: readonly LiveDataRow[]
  readonly totalCount: number
  /** Controllers that did not respond, so that rows may be missing. */
  readonly silent: readonly string[]
}

/** Ids of the identities in rows that do not contain their names. */
export function clientIds(rows: readonly LiveDataRow[]): readonly string[] {
  const ids = rows.flatMap(({ clientId, identityId, hostId }) => [clientId, identityId, hostId])
  return ids.filter((id): id is string => typeof id === 'string')
}

const CLOSE_TIMEOUT_MS = 10_000

interface ListBody {
  readonly data: readonly LiveDataRow[]
  readonly meta?: { readonly pagination?: { readonly totalCount: number } }
}

/** Requests the sessions from one controller, because every controller has all of them. */
export async function readSessions(
  path: string,
  limit: number,
  signal: AbortSignal,
): Promise<LiveDataRows> {
  const query = new URLSearchParams({ limit: String(limit), sort: 'createdAt desc' })
  const { body } = await consoleApiClient.ask({
    path: `${MANAGEMENT_API_PATH}/${path}?${query}`,
    signal,
  })
  const { data, meta } = body as ListBody
  const rows = path === 'api-sessions' ? await withLogInMethods(data, signal) : data
  return { rows, totalCount: meta?.pagination?.totalCount ?? data.length, silent: [] }
}

/** The ID of the API session of this tab. */
export async function readOwnSessionId(signal: AbortSignal): Promise<string> {
  const path = `${MANAGEMENT_API_PATH}/current-api-session`
  const { body } = await consoleApiClient.ask({ path, signal })
  return (body as { readonly data: { readonly id: string } }).data.id
}

/**
 * Requests links or circuits from all controllers, because each link or circuit is reported only by
 * the controller that owns it.
 */
export async function readFabricRows(path: string, signal?: AbortSignal): Promise<LiveDataRows> {
  const origins = clusterMembers.list.value.map(({ origin }) => origin)
  const asked = origins.length === 0 ? [clusterMembers.current.value] : origins
  const answers = await Promise.allSettled(
    asked.map((origin) =>
      consoleApiClient.ask({
        path: `${FABRIC_API_PATH}/${path}?limit=500`,
        origin,
        timeoutMs: OWN_DATA_TIMEOUT_MS,
        ...(signal === undefined ? {} : { signal }),
      }),
    ),
  )
  const failed = answers.find((one) => one.status === 'rejected')
  if (failed !== undefined && answers.every((one) => one.status === 'rejected')) {
    throw failed.reason
  }
  const rows = new Map<string, LiveDataRow>()
  const silent: string[] = []
  for (const [at, answer] of answers.entries()) {
    if (answer.status === 'rejected') silent.push(clusterMembers.nameOf(asked[at] ?? ''))
    else for (const row of (answer.value.body as ListBody).data) rows.set(row.id, row)
  }
  return { rows: [...rows.values()], totalCount: rows.size, silent }
}

/** The circuits of all controllers, with their hosts and with marks at routers that are offline. */
export async function readCircuitRows(signal?: AbortSignal): Promise<LiveDataRows> {
  const found = await readFabricRows('circuits', signal)
  if (found.rows.length === 0) return found
  const [rows, offlineIds] = await Promise.all([
    withHosts(found.rows, signal),
    readOfflineRouterIds(signal),
  ])
  return {
    ...found,
    rows: rows.map((row) => ({ ...row, path: markOffline(row['path'], offlineIds) })),
  }
}

export async function closeLiveRow(path: string, id: string): Promise<void> {
  await consoleApiClient.ask({ method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` })
}

/** Ends a circuit or link, at the controller that owns the circuit or link. */
export async function closeFabricRow(path: string, id: string): Promise<void> {
  const origins = clusterMembers.list.value.map(({ origin }) => origin)
  let failure: unknown = null
  for (const origin of origins) {
    try {
      const row = `${FABRIC_API_PATH}/${path}/${encodeURIComponent(id)}`
      await consoleApiClient.ask({
        method: 'DELETE',
        path: row,
        origin,
        timeoutMs: CLOSE_TIMEOUT_MS,
      })
      return
    } catch (error) {
      // A controller that does not respond may own the row that the others do not know.
      if (failure === null || !hasEndedBefore(error)) failure = error
    }
  }
  throw failure
}
