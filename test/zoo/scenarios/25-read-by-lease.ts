import { assert } from '../../../src/lib/assert.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

/** The leader's process stands still, the others elect another and write; then it goes on, and is asked for a read. */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  cluster.tick('1', 2)
  cluster.settle()
  for (const other of ['2', '3']) {
    cluster.cut('1', other)
    cluster.cut(other, '1')
  }
  cluster.elect('2')
  cluster.propose('2', 'written')
  cluster.settle(['2', '3'])
  cluster.events = []
  // Of all the ticks that it missed, one is due (node.ts).
  cluster.tick('1')
  cluster.step('1', { type: 'read', id: 1 })
  const answered = cluster.events.find((event) => event.startsWith('1 reads at'))
  assert(
    answered === undefined,
    `I15: "${answered}" answers a read begun after ${cluster.core('2').fullStatus.commit} was written`,
  )
}
