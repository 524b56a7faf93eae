import { assert } from '../../src/lib/assert.ts'
import type { NodeId } from '../../src/raft/types.ts'
import type { ScriptCluster } from '../raft/script-cluster.ts'

/**
 * I6 for the entries that `id` regards as committed, according to the configuration in force at
 * each entry.
 */
export function assertOnQuorum(cluster: ScriptCluster, id: NodeId): void {
  const { commit, configuration } = cluster.core(id).fullStatus
  const term = cluster.core(id).termAt(commit) ?? 0
  for (const voters of [configuration.voters, configuration.outgoingVoters]) {
    const holders = voters.filter((voter) => cluster.platter(voter).holds(commit, term))
    const isQuorum = voters.length === 0 || holders.length * 2 > voters.length
    assert(isQuorum, `I6: ${id} commits ${term}/${commit}, which only ${holders.join()} hold`)
  }
}
