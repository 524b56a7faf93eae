import { computed, signal } from '@preact/signals'

import { MANAGEMENT } from '../../client/cluster-client.ts'
import { ApiRefusalError } from '../../client/problem.ts'
import { ApiClient } from '../client/api-client.ts'
import { EventFeed } from '../client/event-feed.ts'
import { Members } from '../client/members.ts'
import { TabSession } from '../client/session.ts'
import { SharedSession } from '../client/shared-session.ts'
import { isWatched } from './loaded.ts'

// The services of this tab; each is created once.

export const members = new Members(location.origin)
export const session = new TabSession(sessionStorage, isWatched)
export const client = new ApiClient(members, session)
session.attach(client)
export const sharedSession = new SharedSession(session)
export const feed = new EventFeed(client, navigator.locks)

/**
 * If a controller has not heard from a leader for this long, the cluster counts as having no
 * leader.
 */
const LEADERLESS_MS = 3_000
const writeRefused = signal(false)

/** True when nothing can be changed because there is no leader. */
export const isReadOnly = computed(
  () => writeRefused.value || client.leaderSilenceMs.value >= LEADERLESS_MS,
)

/**
 * Called when a change was refused because there is no leader. The next response that names a
 * leader resets this.
 */
export function recordRefusal(error: unknown): void {
  const isLeaderless = error instanceof ApiRefusalError && error.code === 'CLUSTER_NO_LEADER'
  if (isLeaderless) writeRefused.value = true
}

const PROBE_MS = 3_000

/**
 * Sends a request to the members that failed; each member that responds counts as reachable again.
 */
export async function probeFailed(): Promise<void> {
  const asked = members.failed.value.filter((origin) => origin !== members.current.value)
  await Promise.allSettled(
    asked.map((origin) =>
      client.ask({
        path: `${MANAGEMENT}/version`,
        origin,
        timeoutMs: PROBE_MS,
        showsSession: false,
      }),
    ),
  )
}

export async function refreshMembers(): Promise<void> {
  const query = { limit: '64' }
  members.learn((await client.served('GET /edge/management/v1/controllers', { query })).data)
  members.store(sessionStorage)
  if (client.leaderSilenceMs.value < LEADERLESS_MS) writeRefused.value = false
}
