import { detailResponse, rfc3339Text } from '../http/responses/envelope.ts'
import type { MetricHistory } from '../metrics/metric-history.ts'
import type { Operation } from '../http/operation.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import { clusterHistorySchema } from './status-schema.ts'

interface ClusterHistoryOperationsDeps {
  readonly cluster: ClusterView
  readonly history: MetricHistory
}

/**
 * Operation that returns measurements of this controller from the last hour; works without a
 * quorum.
 */
export function clusterHistoryOperations({
  cluster,
  history,
}: ClusterHistoryOperationsDeps): Operation[] {
  return [
    {
      operationId: 'clusterHistory',
      summary: 'Show metrics of this controller for the last hour, with a value every ten seconds',
      tag: 'cluster',
      apis: ['fabric'],
      method: 'GET',
      path: '/cluster/history',
      permission: 'admin',
      success: 200,
      response: { kind: 'detail', schema: clusterHistorySchema },
      isCompressible: true,
      needsNoState: true,
      handle: () => {
        const { periodMs, endedAtMs, figures } = history.view()
        return detailResponse({
          selfId: cluster.selfId,
          periodSeconds: periodMs / 1000,
          endedAt: endedAtMs === null ? null : rfc3339Text(endedAtMs),
          figures,
        })
      },
    },
  ]
}
