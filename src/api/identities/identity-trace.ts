import { parseDuration } from '../../lib/text/duration.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import { requirePermissionsOf } from '../../auth/principal/permissions.ts'
import { detailAnswer, type Reply, rfc3339Text } from '../http/answers/envelope.ts'
import { type Operation, withBody } from '../http/operation.ts'
import { traceDetail, traceSpec } from './identities-schema.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import { requireCaller } from '../sessions/current.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ConfirmedReads } from '../http/consistency.ts'
import type { Clock } from '../../lib/clock.ts'
import { type IdentityTraces, traceChannels, traceMsMax } from '../../ports/identity-traces.ts'

interface IdentityTraceOperationsDeps {
  readonly state: StateView
  readonly reads: ConfirmedReads
  readonly clock: Clock
  readonly traces: IdentityTraces
}

/**
 * Operations that trace the circuits of one identity for a limited time. A trace also ends when
 * this process ends.
 */
export function identityTraceOperations(deps: IdentityTraceOperationsDeps): Operation[] {
  return [
    withBody({
      operationId: 'updateIdentityTracing',
      summary: 'Enable or disable tracing of an identity',
      tag: 'identities',
      apis: ['management'],
      permission: 'identity.update',
      method: 'PUT',
      path: '/identities/{id}/trace',
      body: { schema: traceSpec, isRequired: true },
      success: 200,
      response: { kind: 'detail', schema: traceDetail },
      refusals: [404],
      handle: (call, wanted) => {
        const id = call.param('id')
        return deps.reads.found(call, `identity with id ${id}`, () => {
          if (deps.state.get('identity', id) === undefined) return null
          requirePermissionsOf(deps.state, requireCaller(call), id)
          return change(deps, id, wanted)
        })
      },
    }),
  ]
}

function change(
  { clock, traces }: IdentityTraceOperationsDeps,
  id: string,
  { enabled, duration, traceId, channels }: SchemaValue<typeof traceSpec.schema>,
): Reply {
  if (enabled !== true) {
    const ended = traces.of(id)
    traces.end(id)
    return detailAnswer({
      enabled: false,
      traceId: ended?.traceId ?? traceId ?? '',
      until: rfc3339Text(clock.nowMs()),
    })
  }
  const given = duration ?? ''
  const durationMs = parseDuration(given)
  if (durationMs === null || durationMs <= 0 || durationMs > traceMsMax) {
    const reason = 'duration must be a positive duration of at most 24h, like 10m or 1h30m'
    throw fieldProblem('duration', reason, given)
  }
  const trace = {
    traceId: traceId === undefined || traceId === null || traceId === '' ? newShortId() : traceId,
    untilMs: Math.round(clock.nowMs() + durationMs),
    channels: channelsOf(channels ?? []),
  }
  if (!traces.begin(id, trace)) throw new Problem('SERVER_TOO_MANY_REQUESTS')
  return detailAnswer({
    enabled: true,
    traceId: trace.traceId,
    until: rfc3339Text(trace.untilMs),
  })
}

/** As in OpenZiti, an empty list means all channels; unknown names are ignored. */
function channelsOf(names: readonly string[]): number {
  const isAll = names.length === 0 || names.includes('all')
  const chosen = Object.entries(traceChannels).filter(([name]) => isAll || names.includes(name))
  return chosen.reduce((sum, [, bit]) => sum + bit, 0)
}
