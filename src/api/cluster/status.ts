import { requirePresent } from '../../lib/assert.ts'
import type { ClusterStatus, MemberStatus } from './cluster-status.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import type { NodeHealth } from '../../ports/node-health.ts'
import { detailResponse } from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import { clusterStatusSchema } from './status-schema.ts'
import type { HealthReport } from '../api-deps.ts'

interface ClusterStatusOperationsDeps {
  readonly cluster: ClusterView
  readonly health: () => HealthReport
}

/** Operation that shows the cluster as this controller sees it; works without a quorum. */
export function clusterStatusOperations({
  cluster,
  health,
}: ClusterStatusOperationsDeps): Operation[] {
  return [
    {
      operationId: 'clusterStatus',
      summary:
        'Show the replication status of each member, as this controller sees it, and the alarms',
      tag: 'cluster',
      apis: ['fabric'],
      method: 'GET',
      path: '/cluster/status',
      permission: 'admin',
      success: 200,
      response: { kind: 'detail', schema: clusterStatusSchema },
      isCompressible: true,
      needsNoState: true,
      handle: () => {
        const node = requirePresent(health().node, 'a controller knows how it is')
        return detailResponse(statusOf(cluster, node))
      },
    },
  ]
}

/**
 * Text for the risk if there is no leader: no write succeeds then, even if enough voters are
 * connected.
 */
const NO_LEADER = 'no leader: writes wait until one is elected'

function statusOf(
  cluster: ClusterView,
  { failureTolerance, failureToleranceMax, nextRisk, alarms }: NodeHealth,
): ClusterStatus {
  const next = nextFeatureLevel(cluster)
  const leaderId = cluster.leaderId()
  return {
    clusterId: cluster.clusterId,
    generation: cluster.generation,
    selfId: cluster.selfId,
    leaderId,
    featureLevel: cluster.featureLevel,
    ...(next === null ? {} : { nextFeatureLevel: next }),
    members: cluster.members().map(memberStatus),
    failureTolerance,
    failureToleranceMax,
    nextRisk: leaderId === null && failureTolerance >= 0 ? NO_LEADER : nextRisk,
    alarms,
  }
}

/**
 * The next feature level, to which the cluster changes once every voter supports it; null when no
 * voter supports a higher level than the current one.
 */
function nextFeatureLevel(
  cluster: ClusterView,
): NonNullable<ClusterStatus['nextFeatureLevel']> | null {
  const voters = cluster.members().filter(({ voter }) => voter)
  const level = Math.max(...voters.map(({ featureLevel }) => featureLevel))
  if (level <= cluster.featureLevel) return null
  const waitsFor = voters
    .filter(({ connected, featureLevel }) => !connected || featureLevel < level)
    .map(({ id }) => id)
  return { level, waitsFor }
}

function memberStatus(member: MemberView): MemberStatus {
  const { id, address, version, progress, lastContactMs, vitals, featureLevel } = member
  return {
    id,
    address,
    version,
    role: progress?.role ?? 'unknown',
    term: progress?.term ?? 0,
    commit: progress?.commit ?? 0,
    applied: progress?.applied ?? 0,
    persisted: progress?.persisted ?? 0,
    digestIndex: progress?.digestIndex ?? 0,
    digest: progress?.digest ?? '',
    lastContactMs,
    isFailing: vitals?.isFailing ?? false,
    featureLevel,
  }
}
