import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, LogTimeResetSchema } from '../../../proto/gen/command_pb.ts'
import { formatTime } from '../../lib/text/format-time.ts'
import { Problem } from '../../lib/problems.ts'
import { commandFeatureLevel } from '../../ports/feature-level.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import { requestActor, type RequestContext } from '../http/request-context.ts'
import type { Operation } from '../http/operation.ts'
import { logTimeResetResultSchema } from './status-schema.ts'
import type { Proposer } from '../../ports/proposer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'

interface LogTimeOperationsDeps {
  readonly proposer: Proposer
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
}

const AHEAD_MS_ALLOWED = 2_000

/** Operation that resets log time to the time of the majority's clocks. */
export function logTimeResetOperations(deps: LogTimeOperationsDeps): Operation[] {
  return [
    {
      operationId: 'clusterResetLogTime',
      summary: 'Bring log time back to the clocks of a majority (admin socket only)',
      tag: 'cluster',
      apis: ['fabric'],
      method: 'POST',
      path: '/cluster/reset-log-time',
      permission: 'admin',
      success: 200,
      response: { kind: 'detail', schema: logTimeResetResultSchema },
      refusals: [403, 409],
      handle: (call) => reset(deps, call),
    },
  ]
}

async function reset(deps: LogTimeOperationsDeps, call: RequestContext): Promise<Reply> {
  const { cluster, state, reads, proposer } = deps
  await reads.reachLatest()
  const targetMs = cluster.quorumClockMs()
  if (targetMs === null) {
    throw new Problem('PEER_UNREACHABLE', {
      detail: 'the clocks of a majority are not known here; retry when the members are connected',
      retryAfterSeconds: 1,
    })
  }
  // A reset invalidates request IDs, so it is skipped while log time is ahead by no more than the
  // tolerance for a leader's timestamps.
  if (state.logTimeMs - targetMs <= AHEAD_MS_ALLOWED) return answered(0, state.logTimeMs)
  const kind = CommandKind.LOG_TIME_RESET
  const message = create(LogTimeResetSchema, { targetMs: BigInt(targetMs) })
  const { outcome } = await proposer.propose({
    kind,
    level: commandFeatureLevel(kind),
    actor: requestActor(call),
    payload: toBinary(LogTimeResetSchema, message),
  })
  if (!outcome.ok) {
    const { code, detail } = outcome
    throw new Problem(code, detail === null ? {} : { detail })
  }
  const aheadMs = Number(outcome.id)
  return answered(aheadMs, aheadMs === 0 ? state.logTimeMs : targetMs)
}

function answered(aheadMs: number, logTimeMs: number): Reply {
  return detailResponse({ aheadMs, logTime: formatTime(logTimeMs) })
}
