import { ScriptCluster } from '../../raft/script-cluster.ts'
import { assertOnQuorum } from '../on-quorum.ts'

/**
 * Leader 1 sends entries to 3, whose acknowledgment is late. Leader 2 replaces these entries on
 * both. Leader 1 is elected again and reaches the same indexes with other entries: the entries that
 * 3 acknowledged in the first term are not those that it has in the current one.
 */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3', '4', '5'] })
  cluster.elect('1')
  cut(cluster, '1', ['2', '4', '5'])
  cluster.propose('1', 'a', 'b', 'c', 'd', 'e')
  cluster.deliver('1', '3')
  cluster.settle(['3'])
  const late = cluster.flights.filter(({ type }) => type === 'appendResponse')
  cluster.flights = []
  cut(cluster, '3', ['1', '2', '4', '5'])
  cluster.elect('2')
  cluster.heal()
  for (let round = 0; round < 4; round += 1) {
    cluster.tick('2', 2)
    cluster.settle()
  }
  cluster.elect('1')
  cut(cluster, '1', ['2', '3', '5'])
  cluster.propose('1', 'f', 'g', 'h')
  cluster.settle(['1', '4'])
  for (const message of late) cluster.receive(message)
  cluster.settle(['1', '4'])
  assertOnQuorum(cluster, '1')
}

function cut(cluster: ScriptCluster, id: string, others: readonly string[]): void {
  for (const other of others) {
    cluster.cut(id, other)
    cluster.cut(other, id)
  }
}
