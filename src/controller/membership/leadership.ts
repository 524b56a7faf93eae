import type { Logger } from 'pino'

import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { defaultLeadershipTiming } from '../../cluster/membership/leadership.ts'
import { LeadershipBalancer } from '../../cluster/membership/balancer.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { systemClock } from '../../lib/clock.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { ActionRecorder } from '../../ports/membership.ts'

/** Starts to move leadership to the member that the configuration prefers. */
export function watchLeadership(
  { cluster }: ControllerConfig,
  clusterNode: ClusterNode,
  actions: ActionRecorder,
  log: Logger,
): LeadershipBalancer {
  const { priority, slowFsyncMs, slowLoopMs } = cluster
  const steward = new LeadershipBalancer(
    { ...defaultLeadershipTiming, priority, slowFsyncMs, slowLoopMs },
    {
      cluster: clusterNode,
      soft: clusterNode.soft,
      clock: systemClock,
      log,
      matchIndex: (id) =>
        clusterNode.peerStatuses().find((peer) => peer.id === id)?.matchIndex ?? null,
      transfer: async (to, reason) => {
        await clusterNode.transferLeadership(to)
        const action = { action: 'leadership-transfer', target: to, reason }
        void actions.note({ ...action, outcome: 'done' }, SYSTEM_ACTOR)
      },
    },
  )
  steward.start()
  return steward
}
