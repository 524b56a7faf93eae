import { LogRetention } from '../../../src/cluster/state-transfer/log-retention.ts'
import { assert } from '../../../src/lib/assert.ts'
import type { Index } from '../../../src/raft/types.ts'
import { ScriptCluster } from '../../raft/script-cluster.ts'

const KEPT_ENTRIES = 512
/** Writes during one snapshot transfer: more than the log keeps if no follower needs them. */
const WRITTEN_MEANWHILE = 1500
const ROUNDS_MAX = 5
const SETTLING_TICKS = 40

/**
 * A member that was offline catches up by snapshot, over a link so slow that clients write many
 * entries meanwhile.
 */
export function scenario(): void {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  const retention = new LogRetention({
    entries: KEPT_ENTRIES,
    bytes: Infinity,
    catchUpBytes: Infinity,
  })
  let noted: Index = 0
  const write = (count: number, slowestLive: Index): void => {
    for (let at = 0; at < count; at += 50) {
      cluster.propose('1', ...Array.from({ length: 50 }, (_, of) => `${at + of}`))
      cluster.settle(['1', '2'])
      for (const entry of cluster.appliedBy('1')) {
        if (entry.index > noted) retention.note(entry)
        noted = Math.max(noted, entry.index)
      }
      const cut = retention.cut(cluster.core('1').fullStatus.applied, slowestLive)
      if (cut !== null) cluster.step('1', { type: 'compact', position: cut })
    }
  }
  cluster.crash('3')
  write(WRITTEN_MEANWHILE, Infinity)
  cluster.flights = []
  cluster.restart('3')
  let rounds = 0
  while (isSnapshotWanted(cluster)) {
    rounds += 1
    assert(rounds <= ROUNDS_MAX, 'I18: 3 is sent one snapshot after the other and never arrives')
    const { position, configuration } = cluster.snapshotOf('1')
    write(WRITTEN_MEANWHILE, cluster.core('3').fullStatus.commit)
    const { term } = cluster.core('1').status
    cluster.receive({ type: 'snapshot', from: '1', to: '3', term, position, configuration })
    cluster.step('1', { type: 'snapshotSent', to: '3' })
  }
  const [leader, member] = ['1', '3'].map((id) => cluster.core(id).fullStatus.commit)
  assert(rounds > 0 && leader === member, `I18: 3 stands at ${member} of ${leader}`)
}

/**
 * Runs the cluster for a while. At the end either 3 has caught up, or the leader requests a
 * snapshot.
 */
function isSnapshotWanted(cluster: ScriptCluster): boolean {
  cluster.events = []
  for (let tick = 0; tick < SETTLING_TICKS; tick += 1) {
    for (const id of cluster.ids) cluster.tick(id)
    cluster.settle()
  }
  return cluster.events.includes('1 has to send 3 a snapshot')
}
