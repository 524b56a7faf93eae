import type { ClusterNode } from '../../cluster/cluster-node.ts'
import type { RouterCluster } from '../../fabric/router-channels.ts'

/**
 * The cluster as this controller reports it to routers.
 * @param isOusted whether the cluster continues without this controller. It then omits itself: a
 * router drops one of two controllers only when both omit it.
 */
export function clusterOf(clusterNode: ClusterNode, isOusted: () => boolean): RouterCluster {
  return {
    addresses: () => {
      const isGone = isOusted()
      const members = clusterNode.members().filter(({ id }) => !isGone || id !== clusterNode.selfId)
      // Members that have never connected have no address yet, but may get one.
      const isKnown = members.every(
        ({ startedAtMs, routerAddress }) => startedAtMs > 0 || routerAddress !== null,
      )
      if (members.length === 0 || !isKnown) return null
      const { index: configurationIndex, record } = clusterNode.configuration()
      const keys = new Map(record.members.map((member) => [member.id, member.publicKeySha256]))
      const controllers = members.flatMap(({ id, routerAddress }) => {
        const publicKeySha256 = keys.get(id) ?? new Uint8Array()
        return routerAddress === null ? [] : [{ id, address: routerAddress, publicKeySha256 }]
      })
      const isLeader = clusterNode.leaderId() === clusterNode.selfId
      const index = isLeader
        ? Math.max(configurationIndex, clusterNode.status().commit)
        : configurationIndex
      // While a voter leaves, it is still listed as a member.
      const removed = record.removed.filter(
        ({ id, publicKeySha256 }) => !isSameKey(keys.get(id), publicKeySha256),
      )
      return { controllers, removed, index, configurationIndex, isLeader }
    },
    leaderIndex: () => {
      if (clusterNode.leaderId() !== clusterNode.selfId) return null
      return (
        clusterNode.members().find(({ id }) => id === clusterNode.selfId)?.progress?.term ?? null
      )
    },
  }
}

function isSameKey(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0
}

/** Controllers that routers can reach now, including this one if it listens for routers. */
export function* controllersOfRouters(clusterNode: ClusterNode): Iterable<string> {
  for (const { id, connected, routerAddress } of clusterNode.members()) {
    if (connected && routerAddress !== null) yield id
  }
}
