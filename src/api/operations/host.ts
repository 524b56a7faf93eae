import { answer, bareAnswer } from '../envelope.ts'
import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { health, metricsText } from '../schemas.ts'
import type { ApiServices } from '../services.ts'

/** What stands at the root of a listener, for load balancers and monitoring. */
export function hostOperations(parts: ApiParts, { metrics }: ApiServices): Operation[] {
  return [
    {
      operationId: 'healthChecks',
      summary: 'Tells whether this controller is alive: 200, or 503 when a check fails',
      tag: 'host',
      apis: ['host'],
      method: 'GET',
      path: '/health-checks',
      permission: 'public',
      success: 200,
      response: { kind: 'detail', schema: health },
      refusals: [],
      alsoAnswers: 503,
      isAlwaysServed: true,
      handle: () => {
        const { isHealthy, checks } = parts.health()
        // Which check fails is no secret; its details may be, so they stay inside.
        const bare = checks.map(({ id, healthy }) => ({ id, healthy }))
        return answer(isHealthy ? 200 : 503, { healthy: isHealthy, checks: bare })
      },
    },
    {
      operationId: 'metrics',
      summary: 'Numbers of this process in the Prometheus text format',
      tag: 'host',
      apis: ['host'],
      method: 'GET',
      path: '/metrics',
      permission: 'admin',
      success: 200,
      response: { kind: 'bare', schema: metricsText, types: ['text/plain'] },
      refusals: [401, 406, 503],
      handle: async () => bareAnswer(await metrics.text(), metrics.contentType),
    },
  ]
}
