import { consoleApiClient } from '../../app/console-state.ts'
import type {
  AuditDetail,
  ClusterChangePlan,
  ClusterInvitationDetail,
  ClusterStatus,
} from '../../client/served-types.ts'
import { FABRIC_API_PATH } from '../../../client/cluster-client.ts'

export type MemberStatus = ClusterStatus['members'][number]

export type ChangeVerb = 'promote' | 'demote' | 'remove'

export const fetchClusterStatus = async (signal: AbortSignal): Promise<ClusterStatus> =>
  (await consoleApiClient.served('GET /fabric/v1/cluster/status', { signal })).data

/**
 * Query for recent changes without log-ins, which are frequent and change nothing that other users
 * see.
 */
const NEWEST_CHANGES = { limit: '10', filter: 'action != "session-create"' }

export const fetchRecentChanges = async (signal: AbortSignal): Promise<readonly AuditDetail[]> =>
  (await consoleApiClient.served('GET /fabric/v1/audit', { query: NEWEST_CHANGES, signal })).data

export const planChange = async (verb: ChangeVerb, id: string): Promise<ClusterChangePlan> =>
  (await consoleApiClient.served('POST /fabric/v1/cluster/plan', { body: { verb, id } })).data

/** Long, because a change of members may take the cluster that long. */
const CHANGE_TIMEOUT_MS = 60_000

export async function changeMember(
  verb: ChangeVerb,
  id: string,
  confirmation: string | null,
): Promise<void> {
  await consoleApiClient.ask({
    method: 'POST',
    path: `${FABRIC_API_PATH}/cluster/${verb}-member`,
    body: { id, ...(confirmation === null ? {} : { confirmation }) },
    isOnceOnly: true,
    timeoutMs: CHANGE_TIMEOUT_MS,
  })
}

export async function transferLeadership(newLeaderId: string): Promise<void> {
  await consoleApiClient.ask({
    method: 'POST',
    path: `${FABRIC_API_PATH}/cluster/transfer-leadership`,
    body: { newLeaderId },
    isOnceOnly: true,
    timeoutMs: CHANGE_TIMEOUT_MS,
  })
}

export async function invite(
  isVoter: boolean,
  lifetimeMs: number,
): Promise<ClusterInvitationDetail> {
  const body = { isVoter, lifetimeMs }
  return (
    await consoleApiClient.served('POST /fabric/v1/cluster/invite', { body, isOnceOnly: true })
  ).data
}
