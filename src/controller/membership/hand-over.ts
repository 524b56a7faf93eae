import type { Logger } from 'pino'
import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { systemClock } from '../../lib/clock.ts'

/** How long a leader that goes away waits for its successor before it stops serving. */
const HANDOVER_MS_MAX = 2_000
const POLL_MS = 10

/**
 * Before a stop: whoever leads hands leadership over, if anybody can take it, and waits until it is
 * taken.
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
    // Members that could follow go away meanwhile, where all are stopped at once.
    if ((leader !== null && leader !== clusterNode.selfId) || !hasSuccessor(clusterNode)) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function hasSuccessor(clusterNode: ClusterNode): boolean {
  return clusterNode
    .members()
    .some(({ id, voter, connected }) => voter && connected && id !== clusterNode.selfId)
}
