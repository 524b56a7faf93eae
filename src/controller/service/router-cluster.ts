import type { ClusterNode } from '../../cluster/cluster-node.ts'
import type { RouterCluster } from '../../fabric/router-channels.ts'

/** The cluster as this controller tells routers of it. */
export function clusterOf(clusterNode: ClusterNode): RouterCluster {
  return {
    addresses: () => {
      const members = clusterNode.members()
      // Members that were never heard of have no address yet, but they may have one.
      const isKnown = members.every(
        ({ startedAtMs, routerAddress }) => startedAtMs > 0 || routerAddress !== null,
      )
      if (members.length === 0 || !isKnown) return null
      const controllers = members.flatMap(({ id, routerAddress }) =>
        routerAddress === null ? [] : [{ id, address: routerAddress }],
      )
      const { index: configurationIndex } = clusterNode.configuration()
      const isLeader = clusterNode.leaderId() === clusterNode.selfId
      const index = isLeader
        ? Math.max(configurationIndex, clusterNode.status().commit)
        : configurationIndex
      return { controllers, index, configurationIndex, isLeader }
    },
    leaderIndex: () => {
      if (clusterNode.leaderId() !== clusterNode.selfId) return null
      return (
        clusterNode.members().find(({ id }) => id === clusterNode.selfId)?.progress?.term ?? null
      )
    },
  }
}

/** Controllers that routers can reach now; this one among them, where it listens for them. */
export function* controllersOfRouters(clusterNode: ClusterNode): Iterable<string> {
  for (const { id, connected, routerAddress } of clusterNode.members()) {
    if (connected && routerAddress !== null) yield id
  }
}
