import { answer, bareAnswer } from '../../answers/envelope.ts'
import { durationText } from '../../../lib/text/duration-text.ts'
import type { Operation } from '../../operation.ts'
import type { ApiParts } from '../../parts.ts'
import { health, metricsText, readiness } from '../../schemas/about.ts'
import type { ApiServices } from '../../records/services.ts'

/** What stands at the root of a listener, for load balancers and monitoring. */
export function hostOperations(parts: ApiParts, { metrics }: ApiServices): Operation[] {
  return [
    healthOperation(parts, 'healthChecks', '/health-checks'),
    // Where clients of the API family ask.
    healthOperation(parts, 'healthChecksV1', '/health-checks/v1'),
    {
      operationId: 'readiness',
      summary: 'Readiness: 503 without a leader, in quarantine and during shutdown',
      tag: 'host',
      apis: ['host'],
      method: 'GET',
      path: '/health-checks/ready',
      permission: 'public',
      success: 200,
      response: { kind: 'detail', schema: readiness },
      refusals: [],
      alsoAnswers: 503,
      isAlwaysServed: true,
      isForMonitors: true,
      handle: () => {
        const self = parts.cluster.members().find(({ id }) => id === parts.cluster.selfId)
        const isReady = parts.refusal() === null && self?.readOnly === false
        return answer(isReady ? 200 : 503, { ready: isReady })
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
      response: { kind: 'bare', schema: metricsText, types: ['text/plain'] },
      refusals: [401, 406, 503],
      isForMonitors: true,
      handle: async () => bareAnswer(await metrics.text(), metrics.contentType),
    },
  ]
}

function healthOperation(parts: ApiParts, operationId: string, path: string): Operation {
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
    response: { kind: 'detail', schema: health },
    refusals: [],
    alsoAnswers: 503,
    isAlwaysServed: true,
    isForMonitors: true,
    handle: ({ caller }) => {
      const { isHealthy, checks, node, when } = checkHealth(parts)
      const status = isHealthy ? 200 : 503
      if (caller !== null) {
        return answer(status, {
          healthy: isHealthy,
          checks: checks.map((check) => ({ ...check, ...when })),
          ...(node === undefined ? {} : { node }),
        })
      }
      // Which check fails is no secret; its details may be, so they stay inside.
      const bare = checks.map(({ id, healthy }) => ({ id, healthy, ...when }))
      return answer(status, { healthy: isHealthy, checks: bare })
    },
  }
}

/** The checks are made at each request, all in one look, so they share the time it took. */
function checkHealth({ health: check, clock }: ApiParts) {
  const beganMs = clock.monotonicMs()
  const report = check()
  const lastCheckDuration = durationText(clock.monotonicMs() - beganMs)
  const when = { lastCheckTime: new Date(clock.nowMs()).toISOString(), lastCheckDuration }
  return { ...report, when }
}
