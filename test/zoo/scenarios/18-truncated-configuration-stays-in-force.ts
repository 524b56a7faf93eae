import { assert } from '../../../src/lib/assert.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

/** A change that only 3 has logged is replaced by the next leader's entries: the configuration of before is in force. */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3', '4', '5'] })
  cluster.elect('1')
  for (const other of ['2', '4', '5']) cut(cluster, '1', other)
  cluster.change('1', { voters: ['1', '2', '4'] })
  cluster.deliver('1', '3')
  cluster.settle(['3'])
  cluster.crash('1')
  for (const other of ['2', '4', '5']) cut(cluster, '3', other)
  cluster.elect('2')
  cluster.heal()
  for (let round = 0; round < 4; round += 1) {
    cluster.tick('2', 2)
    cluster.settle()
  }
  const { outgoingVoters } = cluster.core('3').status.configuration
  assert(outgoingVoters.length === 0, 'I11: 3 goes by a change that is not in its log')
}

function cut(cluster: ScriptCluster, one: string, other: string): void {
  cluster.cut(one, other)
  cluster.cut(other, one)
}
