import { client } from '../../app/services.ts'
import { FABRIC } from '../../../client/cluster-client.ts'

export interface MemberStatus {
  readonly id: string
  readonly address: string
  readonly version: string
  readonly role: string
  readonly term: number
  readonly commit: number
  readonly applied: number
  readonly persisted: number
  readonly lastContactMs: number | null
  readonly isFailing: boolean
  readonly featureLevel: number
}

export interface ClusterStatus {
  readonly clusterId: string
  readonly generation: number
  readonly selfId: string
  readonly leaderId: string | null
  readonly members: readonly MemberStatus[]
  readonly failureTolerance: number
  readonly nextRisk: string
  readonly featureLevel: number
  readonly nextFeatureLevel?: { readonly level: number; readonly waitsFor: readonly string[] }
  readonly alarms: readonly {
    readonly code: string
    readonly text: string
    readonly sinceMs: number
    readonly isCritical: boolean
  }[]
}

export interface AuditRow {
  readonly index: number
  readonly at: string
  readonly actor: { readonly id: string; readonly name: string }
  readonly action: string
  readonly entity: string
  readonly entityId: string
  readonly outcome: string
}

export type ChangeVerb = 'promote' | 'demote' | 'remove'

export interface ChangePlan {
  readonly isNeeded: boolean
  readonly votersBefore: readonly string[]
  readonly votersAfter: readonly string[]
  readonly toleranceBefore: number
  readonly toleranceAfter: number
  readonly warnings: readonly string[]
  readonly confirmation: string | null
}

export interface JoinTicket {
  readonly ticket: string
  readonly id: string
  readonly expiresAtMs: number
}

async function data<T>(ask: Parameters<typeof client.ask>[0]): Promise<T> {
  const { body } = await client.ask(ask)
  return (body as { readonly data: T }).data
}

export const readStatus = (signal: AbortSignal): Promise<ClusterStatus> =>
  data({ path: `${FABRIC}/cluster/status`, signal })

/** Log-ins are many, and change nothing that others see. */
const NEWEST_CHANGES = { limit: '10', filter: 'action != "session-create"' }

export const readChanges = (signal: AbortSignal): Promise<readonly AuditRow[]> =>
  data({ path: `${FABRIC}/audit?${new URLSearchParams(NEWEST_CHANGES)}`, signal })

export const planChange = (verb: ChangeVerb, id: string): Promise<ChangePlan> =>
  data({ method: 'POST', path: `${FABRIC}/cluster/plan`, body: { verb, id } })

/** A change of membership takes as long as the cluster needs for it. */
const CHANGE_TIMEOUT_MS = 60_000

export async function changeMember(
  verb: ChangeVerb,
  id: string,
  confirmation: string | null,
): Promise<void> {
  await client.ask({
    method: 'POST',
    path: `${FABRIC}/cluster/${verb}-member`,
    body: { id, ...(confirmation === null ? {} : { confirmation }) },
    isOnceOnly: true,
    timeoutMs: CHANGE_TIMEOUT_MS,
  })
}

export async function transferLeadership(newLeaderId: string): Promise<void> {
  await client.ask({
    method: 'POST',
    path: `${FABRIC}/cluster/transfer-leadership`,
    body: { newLeaderId },
    isOnceOnly: true,
    timeoutMs: CHANGE_TIMEOUT_MS,
  })
}

export const invite = (isVoter: boolean, lifetimeMs: number): Promise<JoinTicket> =>
  data({
    method: 'POST',
    path: `${FABRIC}/cluster/invite`,
    body: { isVoter, lifetimeMs },
    isOnceOnly: true,
  })
