import type { Logger } from 'pino'
import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { systemClock } from '../../lib/clock.ts'

/** Maximum time for which a stopping leader waits for its successor. */
const HANDOVER_MS_MAX = 2_000
const POLL_MS = 10

/**
 * Before a stop: if this controller is the leader and another voter is connected, transfers
 * leadership and waits for the new leader.
 */
export async function handOverLeadership(
  clusterNode: ClusterNode,
  log: Pick<Logger, 'warn'>,
): Promise<void> {
  if (clusterNode.leaderId() !== clusterNode.selfId || !hasSuccessor(clusterNode)) return
  try {
    await clusterNode.transferLeadership(null)
  } catch (error) {
    log.warn({ err: error }, 'leadership transfer before shutdown failed')
    return
  }
  const deadlineMs = systemClock.monotonicMs() + HANDOVER_MS_MAX
  while (systemClock.monotonicMs() < deadlineMs) {
    const leader = clusterNode.leaderId()
    // The loop stops if there is a new leader, or if no successor is possible, for example because
    // all members stop at the same time.
    if ((leader !== null && leader !== clusterNode.selfId) || !hasSuccessor(clusterNode)) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function hasSuccessor(clusterNode: ClusterNode): boolean {
  return clusterNode
    .members()
    .some(({ id, voter, connected }) => voter && connected && id !== clusterNode.selfId)
}
