import { assert } from '../../../src/lib/assert.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

/** A leader that was cut off has a long log that nobody else has; it stands for election against a later term's entries. */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  cluster.crash('1')
  cluster.setLog('1', { term: 2, vote: '1', terms: [2, 2, 2, 2, 2] })
  cluster.elect('2')
  cluster.propose('2', 'kept')
  cluster.settle()
  const { commit } = cluster.core('2').fullStatus
  cluster.crash('2')
  cluster.restart('1')
  // From the first one it learns of the later term.
  cluster.elect('1')
  cluster.elect('1')
  assert(
    cluster.core('1').status.role !== 'leader' || cluster.core('1').termAt(commit) === 3,
    `I4: leader 1 lacks 3/${commit}, which is committed`,
  )
}
