import { computed, signal } from '@preact/signals'

import { MANAGEMENT_API_PATH } from '../../client/cluster-client.ts'
import { ApiRefusalError } from '../../client/client-errors.ts'
import { ConsoleApiClient } from '../client/api-client.ts'
import { EventFeed } from '../client/event-feed.ts'
import { MemberOrigins } from '../client/members.ts'
import { TabSession } from '../client/session.ts'
import { CrossTabSession } from '../client/shared-session.ts'
import { isTabInUse } from './loaded.ts'

// The objects that all parts of this tab share; each is created once.

export const clusterMembers = new MemberOrigins(location.origin)
export const tabSession = new TabSession(sessionStorage, isTabInUse)
export const consoleApiClient = new ConsoleApiClient(clusterMembers, tabSession)
tabSession.attach(consoleApiClient)
export const sharedSession = new CrossTabSession(tabSession)
export const eventFeed = new EventFeed(consoleApiClient, navigator.locks)

/**
 * If a controller has not heard from a leader for this long, the cluster counts as having no
 * leader.
 */
const LEADERLESS_MS = 3_000
const writeRefused = signal(false)

/** True when nothing can be changed because there is no leader. */
export const isReadOnly = computed(
  () => writeRefused.value || consoleApiClient.leaderSilenceMs.value >= LEADERLESS_MS,
)

/**
 * Called with the error of each failed change. If there is no leader, the console stays read-only
 * until a later request for the members reaches a controller that hears from a leader.
 */
export function noteLeaderlessRefusal(error: unknown): void {
  const isLeaderless = error instanceof ApiRefusalError && error.code === 'CLUSTER_NO_LEADER'
  if (isLeaderless) writeRefused.value = true
}

const PROBE_MS = 3_000

/**
 * Sends a request to the members that did not respond earlier; each member that responds now counts
 * as reachable again.
 */
export async function probeFailedMembers(): Promise<void> {
  const asked = clusterMembers.failed.value.filter(
    (origin) => origin !== clusterMembers.current.value,
  )
  await Promise.allSettled(
    asked.map((origin) =>
      consoleApiClient.ask({
        path: `${MANAGEMENT_API_PATH}/version`,
        origin,
        timeoutMs: PROBE_MS,
        showsSession: false,
      }),
    ),
  )
}

export async function refreshMembers(): Promise<void> {
  const query = { limit: '64' }
  clusterMembers.learn(
    (await consoleApiClient.served('GET /edge/management/v1/controllers', { query })).data,
  )
  clusterMembers.store(sessionStorage)
  if (consoleApiClient.leaderSilenceMs.value < LEADERLESS_MS) writeRefused.value = false
}
