import { assert } from '../../../src/lib/assert.ts'
import { encodeConfiguration } from '../../../src/raft/configuration.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

/** A change that was never committed is on 3's disk alone, when a snapshot of a later term takes the place of its log. */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3', '4', '5'] })
  cluster.elect('1')
  for (const other of ['2', '4', '5']) cut(cluster, '1', other)
  cluster.change('1', { voters: ['1', '2', '4'] })
  cluster.deliver('1', '3')
  cluster.settle(['3'])
  assert(
    cluster.core('3').status.configuration.outgoingVoters.length > 0,
    'the change has reached 3',
  )
  cluster.crash('1')
  for (const other of ['2', '4', '5']) cut(cluster, '3', other)
  cluster.elect('2')
  cluster.propose('2', 'a', 'b', 'c')
  cluster.settle(['2', '4', '5'])
  const { commit } = cluster.core('2').fullStatus
  const position = { term: cluster.core('2').termAt(commit) ?? 0, index: commit }
  cluster.step('2', { type: 'compact', position })
  cluster.heal()
  cluster.deliverSnapshot('2', '3')
  cluster.settle(['2', '3', '4', '5'])
  const [leader, installed] = ['2', '3'].map((id) =>
    encodeConfiguration(cluster.core(id).status.configurationRecord),
  )
  assert(
    Buffer.compare(leader ?? Buffer.of(), installed ?? Buffer.of()) === 0,
    'I11: the configuration of 3 is not that of the snapshot it has installed',
  )
}

function cut(cluster: ScriptCluster, one: string, other: string): void {
  cluster.cut(one, other)
  cluster.cut(other, one)
}
