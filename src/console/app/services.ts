import { computed, signal } from '@preact/signals'

import { ApiProblem } from '../../client/problem.ts'
import { ApiClient } from '../client/api-client.ts'
import { EventFeed } from '../client/event-feed.ts'
import { Members } from '../client/members.ts'
import { TabSession } from '../client/session.ts'
import { isWatched } from './loaded.ts'

// The parts of this tab, put together once.

export const members = new Members(location.origin)
export const session = new TabSession(sessionStorage, isWatched)
export const client = new ApiClient(members, session)
session.attach(client)
export const feed = new EventFeed(client, navigator.locks)

/** A leader that has been silent for so long is none. */
const LEADERLESS_MS = 3_000
const writeRefused = signal(false)

/** Nothing can be changed now: no controller leads. */
export const isReadOnly = computed(
  () => writeRefused.value || client.leaderSilenceMs.value >= LEADERLESS_MS,
)

/** Notes a change refused for lack of a leader; the next fresh answer takes it back. */
export function noteRefusal(error: unknown): void {
  const isLeaderless = error instanceof ApiProblem && error.code === 'CLUSTER_NO_LEADER'
  if (isLeaderless) writeRefused.value = true
}

export async function refreshMembers(): Promise<void> {
  const query = { limit: '64' }
  members.learn((await client.served('GET /edge/management/v1/controllers', { query })).data)
  members.store(sessionStorage)
  if (client.leaderSilenceMs.value < LEADERLESS_MS) writeRefused.value = false
}
