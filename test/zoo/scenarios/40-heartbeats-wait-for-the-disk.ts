import { assert } from '../../../src/lib/assert.ts'
import { defaultCoreOptions } from '../../../src/raft/options.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

/** The leader's disk takes longer than an election timeout over one write: nobody has a reason to elect another. */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  const { term } = cluster.core('1').status
  cluster.holdDisk('1', true)
  cluster.propose('1', 'slow')
  for (let tick = 1; tick < defaultCoreOptions.diskStallTicks; tick += 1) {
    for (const id of cluster.ids) cluster.tick(id)
    cluster.settle()
    const now = cluster.core('1').status
    assert(
      now.role === 'leader' && now.term === term,
      `I19: 1 lost its office to its disk after ${tick} ticks`,
    )
  }
}
