import { Problem } from '../../lib/problems.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { RequestContext } from '../call.ts'
import { type AppliedLog, reachLatest } from '../consistency.ts'
import type { Reply } from './envelope.ts'

interface Parts {
  readonly cluster: ClusterView
  readonly state: AppliedLog
  readonly limits: { readonly indexWaitMs: number }
}

/**
 * Answers from what is here, at once. What is not here may have been made on another controller a
 * moment ago, so only the cluster can say that it does not exist: one shared round confirms it, and
 * without a leader nobody knows.
 * @param read null: not found here.
 * @throws {Problem} NOT_FOUND, or CLUSTER_NO_LEADER.
 */
export function foundOrConfirmed(
  parts: Parts,
  call: RequestContext,
  what: string,
  read: () => Reply | Promise<Reply> | null,
): Reply | Promise<Reply> {
  return read() ?? confirm(parts, call, what, read)
}

async function confirm(
  parts: Parts,
  call: RequestContext,
  what: string,
  read: () => Reply | Promise<Reply> | null,
): Promise<Reply> {
  const { cluster, state, limits } = parts
  await reachLatest(cluster, state, limits.indexWaitMs)
  call.index = state.appliedIndex
  const answer = read()
  if (answer !== null) return answer
  throw new Problem('NOT_FOUND', { detail: `${what} not found` })
}
