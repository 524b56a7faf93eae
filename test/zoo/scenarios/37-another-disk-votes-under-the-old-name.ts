import { assert } from '../../../src/lib/assert.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

const NEW_STORE = 2

/**
 * Only 1 and 2 have a committed entry when 2 loses its disk and 1 stops: with an empty disk, 2 must
 * not help to elect a leader.
 */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  for (const [from, to] of [['1', '3'] as const, ['3', '1'] as const]) cluster.cut(from, to)
  cluster.propose('1', 'kept')
  cluster.settle()
  const { commit } = cluster.core('1').fullStatus
  const term = cluster.core('1').termAt(commit)
  cluster.crash('1')
  cluster.wipe('2', NEW_STORE)
  cluster.elect('3')
  const leader = cluster.core('3')
  assert(
    leader.status.role !== 'leader' || leader.termAt(commit) === term,
    `I4: leader 3 lacks ${term}/${commit}, which is committed`,
  )
}
