import { assert } from '../../../src/lib/assert.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

/**
 * A snapshot arrives at a member that has applied, and compacted, more than the snapshot contains.
 */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  const old = cluster.snapshotOf('1')
  cluster.propose('1', 'a', 'b', 'c')
  cluster.settle()
  cluster.tick('1', 2)
  cluster.settle()
  const { position } = cluster.snapshotOf('2')
  cluster.step('2', { type: 'compact', position })
  const before = cluster.core('2').fullStatus.applied
  const { term } = cluster.core('1').status
  cluster.receive({ type: 'snapshot', from: '1', to: '2', term, ...old })
  cluster.settle()
  const { applied } = cluster.core('2').fullStatus
  assert(applied >= before, `I8: applied of 2 fell from ${before} to ${applied}`)
}
