import { answer, bareAnswer } from '../envelope.ts'
import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { health, metricsText, readiness } from '../schemas.ts'
import type { ApiServices } from '../services.ts'

/** What stands at the root of a listener, for load balancers and monitoring. */
export function hostOperations(parts: ApiParts, { metrics }: ApiServices): Operation[] {
  return [
    {
      operationId: 'healthChecks',
      summary:
        'Tells whether this controller is well: 200, or 503 when a check fails; administrators see all of it',
      tag: 'host',
      apis: ['host'],
      method: 'GET',
      path: '/health-checks',
      permission: 'public',
      moreFor: 'admin',
      success: 200,
      response: { kind: 'detail', schema: health },
      refusals: [],
      alsoAnswers: 503,
      isAlwaysServed: true,
      isForMonitors: true,
      handle: ({ caller }) => {
        const { isHealthy, checks, node } = parts.health()
        const status = isHealthy ? 200 : 503
        if (caller !== null) {
          return answer(status, {
            healthy: isHealthy,
            checks,
            ...(node === undefined ? {} : { node }),
          })
        }
        // Which check fails is no secret; its details may be, so they stay inside.
        const bare = checks.map(({ id, healthy }) => ({ id, healthy }))
        return answer(status, { healthy: isHealthy, checks: bare })
      },
    },
    {
      operationId: 'readiness',
      summary:
        'Tells whether this controller should be sent requests: 503 without a leader, in quarantine and before a stop',
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
        'Numbers of this process in the Prometheus text format: for administrators, and for certificates of pki issue',
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
