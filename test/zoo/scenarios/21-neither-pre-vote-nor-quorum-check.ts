import { assert } from '../../../src/lib/assert.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

const ROUNDS = 200

/** Of three, 1 and 3 do not hear each other and both hear 2: whoever leads keeps a majority and must go on leading. */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  const { term } = cluster.core('1').status
  cluster.cut('1', '3')
  cluster.cut('3', '1')
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const id of cluster.ids) cluster.tick(id)
    cluster.settle()
    const now = cluster.core('1').status
    assert(
      now.role === 'leader' && now.term === term,
      `I19: 1 had its majority and was put out of office after ${round} ticks`,
    )
  }
}
