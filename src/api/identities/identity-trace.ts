import { parseDuration } from '../../lib/text/duration.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import { requireRightsOverIdentity } from '../../auth/principal/permissions.ts'
import { detailResponse, type Reply, rfc3339Text } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { traceDetailSchema, traceSpecSchema } from './identities-schema.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { Clock } from '../../lib/clock.ts'
import { type IdentityTraces, traceChannels, traceMsMax } from '../../ports/identity-traces.ts'

interface IdentityTraceOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly clock: Clock
  readonly traces: IdentityTraces
}

/**
 * Operations that trace the circuits of one identity for a limited time. A trace also ends when
 * this process stops.
 */
export function identityTraceOperations(deps: IdentityTraceOperationsDeps): Operation[] {
  return [
    operationWithBody({
      operationId: 'updateIdentityTracing',
      summary: 'Enable or disable tracing of an identity',
      tag: 'identities',
      apis: ['management'],
      permission: 'identity.update',
      method: 'PUT',
      path: '/identities/{id}/trace',
      body: { schema: traceSpecSchema, isRequired: true },
      success: 200,
      response: { kind: 'detail', schema: traceDetailSchema },
      refusals: [404],
      handle: (call, wanted) => {
        const id = call.param('id')
        return deps.reads.found(call, `identity with id ${id}`, () => {
          if (deps.state.get('identity', id) === undefined) return null
          requireRightsOverIdentity(deps.state, requireCaller(call), id)
          return change(deps, id, wanted)
        })
      },
    }),
  ]
}

function change(
  { clock, traces }: IdentityTraceOperationsDeps,
  id: string,
  { enabled, duration, traceId, channels }: SchemaValue<typeof traceSpecSchema.schema>,
): Reply {
  if (enabled !== true) {
    const ended = traces.of(id)
    traces.end(id)
    return detailResponse({
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
  return detailResponse({
    enabled: true,
    traceId: trace.traceId,
    until: rfc3339Text(trace.untilMs),
  })
}

/**
 * Bit mask of the named channels. As in OpenZiti, an empty list means all channels; unknown names
 * are ignored.
 */
function channelsOf(names: readonly string[]): number {
  const isAll = names.length === 0 || names.includes('all')
  const chosen = Object.entries(traceChannels).filter(([name]) => isAll || names.includes(name))
  return chosen.reduce((sum, [, bit]) => sum + bit, 0)
}
