import { TrafficCounts } from '../../../src/api/traffic/traffic-counts.ts'
import type { PeerCaller, PeerChannel, PeerHandler } from '../../../src/cluster/peer-channel.ts'
import { TrafficExchange } from '../../../src/cluster/traffic/cluster-traffic.ts'
import { Problem } from '../../../src/lib/problems.ts'
import type { ClusterView } from '../../../src/ports/cluster-view.ts'

/** The traffic counts of one controller, and its handlers for requests of the others. */
class CountingMember {
  readonly counts: TrafficCounts
  readonly handlers = new Map<string, PeerHandler>()

  constructor(deps: ConstructorParameters<typeof TrafficCounts>[0]) {
    this.counts = new TrafficCounts(deps)
  }
}

/**
 * Traffic of a cluster whose controllers are all in this process; messages are encoded as over the
 * mesh.
 */
export class LocalTrafficCluster {
  readonly exchange: TrafficExchange
  /** Controllers that do not respond. */
  readonly silent = new Set<string>()
  /** Calls so far, each as `method to (timeout)`. */
  readonly calls: string[] = []
  /** Runs before each response of another controller. */
  beforeAnswer: () => Promise<void> = () => Promise.resolve()
  readonly #selfId: string
  readonly #deps: ConstructorParameters<typeof TrafficCounts>[0]
  readonly #members = new Map<string, CountingMember>()

  constructor(
    cluster: Pick<ClusterView, 'selfId' | 'members'>,
    deps: ConstructorParameters<typeof TrafficCounts>[0],
  ) {
    this.#selfId = cluster.selfId
    this.#deps = deps
    this.exchange = this.#exchangeOf(cluster.selfId, cluster)
  }

  /** The counts of this controller. */
  get own(): TrafficCounts {
    return this.countsOf(this.#selfId)
  }

  countsOf(id: string): TrafficCounts {
    return this.#member(id).counts
  }

  #member(id: string): CountingMember {
    const known = this.#members.get(id)
    if (known !== undefined) return known
    const member = new CountingMember(this.#deps)
    this.#members.set(id, member)
    if (id !== this.#selfId) this.#exchangeOf(id, { selfId: id, members: () => [] })
    return member
  }

  #exchangeOf(id: string, cluster: Pick<ClusterView, 'selfId' | 'members'>): TrafficExchange {
    const { counts: local, handlers } = this.#member(id)
    const peers = {
      serve: (method: string, _access: string, handler: PeerHandler) => {
        handlers.set(method, handler)
      },
      call: async (to: string, method: string, payload: Uint8Array, timeoutMs: number) => {
        this.calls.push(`${method} ${to} (${timeoutMs})`)
        await this.beforeAnswer()
        const handler = this.silent.has(to) ? undefined : this.#member(to).handlers.get(method)
        if (handler === undefined) throw new Problem('PEER_UNREACHABLE')
        return await handler({ id } as PeerCaller, payload)
      },
    }
    return new TrafficExchange({ cluster, local, peers: peers as unknown as PeerChannel })
  }
}
