import { assert } from '../../../src/lib/assert.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

/**
 * The heartbeat answers for a read are late. Meanwhile another leader commits a write. Then the old
 * leader gets a second read, and the late answers arrive.
 */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  const read = (id: number) => cluster.step('1', { type: 'read', id })
  read(1)
  for (const other of ['2', '3']) {
    cluster.deliver('1', other)
    cluster.settle([other])
  }
  const late = cluster.flights.filter(({ type }) => type === 'heartbeatResponse')
  assert(late.length === 2, 'both have answered')
  for (const other of ['2', '3']) {
    cluster.cut('1', other)
    cluster.cut(other, '1')
  }
  cluster.elect('2')
  cluster.propose('2', 'written')
  cluster.settle(['2', '3'])
  cluster.events = []
  read(2)
  cluster.tick('1', 2)
  for (const message of late) cluster.receive(message)
  const answered = cluster.events.filter((event) => event.startsWith('1 reads at'))
  // The first read was requested before the write, and may be answered without it.
  assert(
    answered.length <= 1,
    `I15: "${answered.at(-1)}" answers a read begun after ${cluster.core('2').fullStatus.commit} was written`,
  )
}
