import { upgradeStatusSchema, deriveUpgradeStatus } from './upgrade-status.ts'
import { detailResponse } from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'

interface UpgradeOperationsDeps {
  readonly cluster: ClusterView
}

/** Operations that show the progress of a rolling upgrade, as this controller sees the members. */
export function upgradeOperations({ cluster }: UpgradeOperationsDeps): Operation[] {
  return [
    {
      operationId: 'clusterUpgradeStatus',
      summary: 'Show versions and feature levels of the members, and what blocks an upgrade',
      tag: 'cluster',
      apis: ['fabric'],
      method: 'GET',
      path: '/cluster/upgrade-status',
      permission: 'admin',
      success: 200,
      response: { kind: 'detail', schema: upgradeStatusSchema },
      needsNoState: true,
      handle: () => detailResponse({ ...deriveUpgradeStatus(cluster) }),
    },
  ]
}
