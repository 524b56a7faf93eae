import { assert } from '../../../src/lib/assert.ts'
import { defaultCoreOptions } from '../../../src/raft/options.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

/**
 * Two leaders change the members one after the other, neither change known to the other one (Ongaro, raft-dev, 2015-07-10):
 * leader 1 takes in 5 and dies with that on its disk and on 5's; leader 2 takes 1 out before it has committed anything.
 */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3', '4'], learners: ['5'] })
  cluster.elect('1')
  cluster.propose('1', 'before')
  cluster.settle()
  separate(cluster, ['1', '5'], ['2', '3', '4'])
  cluster.change('1', { voters: ['1', '2', '3', '4', '5'] })
  cluster.settle()

  // Elected by all three, and then cut off from 4: what it logs reaches 3 alone.
  cluster.tick('3', 12)
  cluster.tick('4', 12)
  cluster.campaign('2')
  deliverVotes(cluster)
  separate(cluster, ['2', '3'], ['4'])
  cluster.flights = []
  cluster.change('2', { voters: ['2', '3', '4'], learners: ['5'] })
  cluster.propose('2', 'kept')
  for (let round = 0; round < 6; round += 1) {
    cluster.tick('2', 2)
    cluster.settle()
  }
  const { commit } = cluster.core('2').fullStatus
  const term = cluster.core('2').termAt(commit)

  cluster.heal()
  separate(cluster, ['1', '4', '5'], ['2', '3'])
  // From the first one it learns of the later term, which it has to pass.
  cluster.tick('1', defaultCoreOptions.electionTimeoutTicks + 1)
  cluster.elect('1')
  cluster.elect('1')
  const leader = cluster.core('1')
  const isElected = leader.status.role === 'leader' && leader.status.term > (term ?? 0)
  assert(
    !isElected || leader.termAt(commit) === term,
    `I4: leader 1 lacks ${term}/${commit}, which leader 2 has committed`,
  )
}

/** Until 2 leads, and nothing that it sends as the leader. */
function deliverVotes(cluster: ScriptCluster): void {
  for (let round = 0; round < 10 && cluster.core('2').status.role !== 'leader'; round += 1) {
    for (const other of ['3', '4']) {
      cluster.deliver('2', other)
      cluster.settle([other])
      cluster.deliver(other, '2')
      cluster.settle(['2'])
    }
  }
}

function separate(
  cluster: ScriptCluster,
  some: readonly string[],
  others: readonly string[],
): void {
  for (const one of some) {
    for (const other of others) {
      cluster.cut(one, other)
      cluster.cut(other, one)
    }
  }
}
