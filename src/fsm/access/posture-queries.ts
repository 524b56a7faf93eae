import type { ServicePolicy } from '../../entities/service-policy.ts'
import type { JsonObject } from '../../lib/canonical-json.ts'
import type { State } from '../state.ts'
import { checksOf } from './posture.ts'

/** No time limit. */
const noTimeout = -1

/** What a policy asks of a client, one entry a posture check; nothing is known of the client, so none passes. */
export function postureQueries(state: State, policy: ServicePolicy): JsonObject[] {
  return checksOf(state, policy).map((check) => ({
    _links: { self: { href: `./posture-checks/${check.id}` } },
    createdAt: new Date(check.createdAt).toISOString(),
    id: check.id,
    isPassing: false,
    processes: [],
    queryType: check.typeId,
    tags: check.tags,
    timeout: noTimeout,
    timeoutRemaining: noTimeout,
    updatedAt: new Date(check.updatedAt).toISOString(),
  }))
}
