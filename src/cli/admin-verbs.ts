import { Problem } from '../lib/problems.ts'
import type { ClusterView, MemberView } from '../ports/cluster-view.ts'
import type { NodeHealth } from '../ports/node-health.ts'
import type { AdminVerbs } from './admin-server.ts'
import type { ClusterStatus, ListedMember, MemberStatus } from './cluster-status.ts'

const LEADER_POLL_MS = 50
const LEADER_WAIT_MS_MAX = 10_000

/** What the cluster verbs of the command line ask a running controller. */
export function adminVerbs(parts: {
  readonly cluster: ClusterView
  /** @throws {Problem} */
  readonly transferLeadership: (to: string | null) => Promise<void>
  /** Absent: status tells of neither risk nor alarms. */
  readonly health?: () => NodeHealth
}): AdminVerbs {
  const { cluster, health } = parts
  return {
    status: () => Promise.resolve({ ...clusterStatus(cluster), ...riskOf(health?.()) }),
    ...(health === undefined ? {} : { health: () => Promise.resolve(health()) }),
    list: () => Promise.resolve(cluster.members().map(listedMember)),
    'transfer-leadership': async (params) => {
      const to = params['to'] ?? null
      if (to !== null && typeof to !== 'string') {
        throw new Problem('TRANSFER_LEADERSHIP_ERROR', { detail: 'to must be the id of a member' })
      }
      const before = cluster.leaderId()
      await parts.transferLeadership(to)
      return { leaderId: await nextLeader(cluster, before, to) }
    },
  }
}

/** A transfer has begun when it is answered; who asked wants to see who leads now. @returns null: nobody in 10 s. */
async function nextLeader(
  cluster: ClusterView,
  before: string | null,
  wanted: string | null,
): Promise<string | null> {
  const deadlineMs = performance.now() + LEADER_WAIT_MS_MAX
  while (performance.now() < deadlineMs) {
    const leader = cluster.leaderId()
    if (leader !== null && (wanted === null ? leader !== before : leader === wanted)) return leader
    await new Promise((resolve) => setTimeout(resolve, LEADER_POLL_MS))
  }
  return cluster.leaderId()
}

function riskOf(node: NodeHealth | undefined): Partial<ClusterStatus> {
  if (node === undefined) return {}
  const { failureTolerance, nextRisk, alarms } = node
  return { failureTolerance, nextRisk, alarms }
}

function clusterStatus(cluster: ClusterView): ClusterStatus {
  return {
    clusterId: cluster.clusterId,
    generation: cluster.generation,
    selfId: cluster.selfId,
    leaderId: cluster.leaderId(),
    members: cluster.members().map(memberStatus),
  }
}

function memberStatus({ id, progress, lastContactMs }: MemberView): MemberStatus {
  return {
    id,
    role: progress?.role ?? 'unknown',
    term: progress?.term ?? 0,
    commit: progress?.commit ?? 0,
    applied: progress?.applied ?? 0,
    persisted: progress?.persisted ?? 0,
    digestIndex: progress?.digestIndex ?? 0,
    digest: progress?.digest ?? '',
    lastContactMs,
  }
}

function listedMember(member: MemberView): ListedMember {
  const { id, address, voter, leader, connected, version } = member
  return { id, address, voter, leader, connected, version }
}
