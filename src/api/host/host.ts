import { envelopeResponse, responseWithoutEnvelope } from '../http/responses/envelope.ts'
import { durationText } from '../../lib/text/duration-text.ts'
import type { Operation } from '../http/operation.ts'
import { healthSchema, metricsTextSchema, readinessSchema } from '../schemas/about.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { Clock } from '../../lib/clock.ts'
import type { HealthReport } from '../api-deps.ts'
import type { ProblemCode } from '../../lib/problems.ts'
import type { ControllerMetrics } from '../metrics/metrics.ts'

interface HostOperationsDeps {
  readonly cluster: ClusterView
  readonly clock: Clock
  readonly health: () => HealthReport
  readonly refusal: () => ProblemCode | null
  readonly metrics: ControllerMetrics
}

/** Operations at the root of a listener, for load balancers and monitoring. */
export function hostOperations(deps: HostOperationsDeps): Operation[] {
  const { metrics } = deps
  return [
    healthOperation(deps, 'healthChecks', '/health-checks'),
    // The health checks at the path that OpenZiti clients use.
    healthOperation(deps, 'healthChecksV1', '/health-checks/v1'),
    {
      operationId: 'readiness',
      summary: 'Readiness: 503 without a leader, in quarantine and during shutdown',
      tag: 'host',
      apis: ['host'],
      method: 'GET',
      path: '/health-checks/ready',
      permission: 'public',
      success: 200,
      response: { kind: 'detail', schema: readinessSchema },
      alsoAnswers: 503,
      isAlwaysServed: true,
      isForMonitors: true,
      handle: () => {
        const self = deps.cluster.members().find(({ id }) => id === deps.cluster.selfId)
        const isReady = deps.refusal() === null && self?.readOnly === false
        return envelopeResponse(isReady ? 200 : 503, { ready: isReady })
      },
    },
    {
      operationId: 'metrics',
      summary:
        'Metrics in the Prometheus text format, for administrators and certificates of pki issue',
      tag: 'host',
      apis: ['host'],
      method: 'GET',
      path: '/metrics',
      permission: 'admin',
      success: 200,
      response: { kind: 'bare', schema: metricsTextSchema, types: ['text/plain'] },
      isForMonitors: true,
      // Served even while the state is unusable, because the metrics contain the alarm about it.
      needsNoState: true,
      handle: async () => responseWithoutEnvelope(await metrics.text(), metrics.contentType),
    },
  ]
}

function healthOperation(deps: HostOperationsDeps, operationId: string, path: string): Operation {
  return {
    operationId,
    summary: 'Health checks: 200, or 503 if a check fails; details for administrators',
    tag: 'host',
    apis: ['host'],
    method: 'GET',
    path,
    permission: 'public',
    elevatedPermission: 'admin',
    success: 200,
    response: { kind: 'detail', schema: healthSchema },
    alsoAnswers: 503,
    isAlwaysServed: true,
    isForMonitors: true,
    handle: ({ caller }) => {
      const { isHealthy, checks, node, when } = checkHealth(deps)
      const status = isHealthy ? 200 : 503
      if (caller !== null) {
        return envelopeResponse(status, {
          healthy: isHealthy,
          checks: checks.map((check) => ({ ...check, ...when })),
          ...(node === undefined ? {} : { node }),
        })
      }
      // Omits the details of failing checks, because only the names of the checks are public.
      const bare = checks.map(({ id, healthy }) => ({ id, healthy, ...when }))
      return envelopeResponse(status, { healthy: isHealthy, checks: bare })
    },
  }
}

/** Runs all health checks for a request. In the response, each check shows the total duration. */
function checkHealth({ health: check, clock }: HostOperationsDeps) {
  const beganMs = clock.monotonicMs()
  const report = check()
  const lastCheckDuration = durationText(clock.monotonicMs() - beganMs)
  const when = { lastCheckTime: new Date(clock.nowMs()).toISOString(), lastCheckDuration }
  return { ...report, when }
}
