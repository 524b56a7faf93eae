import { consoleApiClient } from '../../app/console-state.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import type {
  ServedAnswers,
  TrafficDetail,
  TrafficTop,
  TrafficTopRowsHour,
} from '../../client/served-types.ts'

export type { TrafficDetail, TrafficTop, TrafficTopRowsHour as TrafficSpan }

/**
 * Number of last periods whose values may still grow: routers report a minute after it is over.
 * In a curve, these periods would look like an outage.
 */
export const unfinishedPeriods = { hour: 2, day: 1 } as const

/** Interval of reloads; shorter than the minute after which routers report. */
export const TRAFFIC_REFRESH_MS = 30_000
/** Longer than the time for which a controller waits for the other controllers. */
const TIMEOUT_MS = 8_000

/**
 * @param collection collection of the record; the traffic of all kinds of routers has the API path
 * `routers`.
 */
export async function readTraffic(
  collection: string,
  id: string,
  signal: AbortSignal,
): Promise<TrafficDetail> {
  const kind = collection === 'services' ? 'services' : 'routers'
  const path = `${MANAGEMENT_API_PATH}/traffic/${kind}/${encodeURIComponent(id)}`
  const { body } = await consoleApiClient.ask({ path, timeoutMs: TIMEOUT_MS, signal })
  return (body as ServedAnswers['GET /edge/management/v1/traffic/services/{id}']).data
}

export async function readTopServices(limit: number, signal: AbortSignal): Promise<TrafficTop> {
  const { data } = await consoleApiClient.served('GET /edge/management/v1/traffic/services', {
    query: { limit: String(limit) },
    timeoutMs: TIMEOUT_MS,
    signal,
  })
  return data
}
