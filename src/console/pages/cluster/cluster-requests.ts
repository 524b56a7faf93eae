import { consoleApiClient } from '../../app/console-state.ts'
import type {
  ClusterChangePlan,
  ClusterInvitationDetail,
  ClusterStatus,
  ClusterTicketDetail,
} from '../../client/served-types.ts'
import { FABRIC_API_PATH } from '../../../client/cluster-client.ts'

export type MemberStatusRow = ClusterStatus['members'][number]

export type ChangeVerb = 'promote' | 'demote' | 'remove'

export const fetchClusterStatus = async (signal: AbortSignal): Promise<ClusterStatus> =>
  (await consoleApiClient.served('GET /fabric/v1/cluster/status', { signal })).data

export const fetchChangePlan = async (verb: ChangeVerb, id: string): Promise<ClusterChangePlan> =>
  (await consoleApiClient.served('POST /fabric/v1/cluster/plan', { body: { verb, id } })).data

/** Timeout of a change of members; long, because the cluster may need that time. */
const CHANGE_TIMEOUT_MS = 60_000

export async function requestMemberChange(
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

export async function requestLeadershipTransfer(newLeaderId: string): Promise<void> {
  await consoleApiClient.ask({
    method: 'POST',
    path: `${FABRIC_API_PATH}/cluster/transfer-leadership`,
    body: { newLeaderId },
    isOnceOnly: true,
    timeoutMs: CHANGE_TIMEOUT_MS,
  })
}

export async function requestInvitation(
  isVoter: boolean,
  lifetimeMs: number,
): Promise<ClusterInvitationDetail> {
  const body = { isVoter, lifetimeMs }
  return (
    await consoleApiClient.served('POST /fabric/v1/cluster/invite', { body, isOnceOnly: true })
  ).data
}

/** Tickets with which a controller can still join. */
export async function fetchTickets(signal: AbortSignal): Promise<readonly ClusterTicketDetail[]> {
  const { data } = await consoleApiClient.served('GET /fabric/v1/cluster/list-tickets', { signal })
  return data.filter(({ usedBy }) => usedBy === null)
}

export async function requestTicketRevocation(id: string): Promise<void> {
  await consoleApiClient.ask({
    method: 'POST',
    path: `${FABRIC_API_PATH}/cluster/revoke-ticket`,
    body: { id },
    isOnceOnly: true,
  })
}

/** Number of voters, as counted by the leader's plan of a change that changes nothing. */
export async function countVoters(selfId: string): Promise<number> {
  return (await fetchChangePlan('promote', selfId)).votersBefore.length
}

/** Number of voters that may fail while the others can still write. */
export function failureTolerance(voters: number): number {
  return Math.floor((voters - 1) / 2)
}
