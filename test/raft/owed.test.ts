import { expect, test } from 'vitest'
import type { PeerStatus } from '../../src/raft/core.ts'
import type { Message, Position } from '../../src/raft/types.ts'
import { ScriptCluster } from './script-cluster.ts'

// Rules of a node with a missing tail that the golden scripts do not show
// (src/raft/missing-tail.ts).

/** Node 1 leads nodes 2 and 3, with entries up to 6. */
function led(): ScriptCluster {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3'] })
  cluster.elect('1')
  cluster.propose('1', 'a', 'b', 'c')
  cluster.settle()
  return cluster
}

function peer(cluster: ScriptCluster, id: string): PeerStatus | undefined {
  return cluster.core('1').fullStatus.peers.find((one) => one.id === id)
}

function refusal(rejectedIndex: number, hint: Position, hasLost: boolean): Message {
  return {
    type: 'appendResponse',
    from: '2',
    to: '1',
    term: 2,
    success: false,
    matchIndex: 0,
    hint,
    rejectedIndex,
    hasLost,
  }
}

test('a late rejection from a peer with a complete log does not lower the peer’s match index', () => {
  const cluster = led()
  cluster.receive(refusal(6, { term: 2, index: 3 }, false))
  expect(peer(cluster, '2')).toMatchObject({ matchIndex: 6, state: 'replicate' })
})

test('a late or repeated rejection from a peer with a missing tail causes one probe, and does not change the commit index', () => {
  const cluster = led()
  for (let time = 1; time <= 3; time += 1) {
    cluster.receive(refusal(6, { term: 2, index: 3 }, true))
    expect(peer(cluster, '2')).toMatchObject({ matchIndex: 0, state: 'probe' })
    expect(cluster.core('1').fullStatus.commit).toBe(6)
    expect(cluster.flights.filter(({ to }) => to === '2').length).toBe(1)
    cluster.settle()
    expect(peer(cluster, '2')).toMatchObject({ matchIndex: 6, state: 'replicate' })
  }
})

function cutOff(cluster: ScriptCluster, from: string, ...others: readonly string[]): void {
  for (const other of others) {
    cluster.cut(from, other)
    cluster.cut(other, from)
  }
}

test('acknowledgments of entries that a disk has lost do not count: with five voters, a commit waits for three disks with the entry', () => {
  const cluster = new ScriptCluster({ voters: ['1', '2', '3', '4', '5'] })
  cluster.elect('1')
  cutOff(cluster, '1', '3', '4', '5')
  cluster.propose('1', 'a')
  cluster.settle()
  const { commit, last } = cluster.core('1').fullStatus
  expect(peer(cluster, '2')?.matchIndex).toBe(last.index)
  cluster.heal()
  cutOff(cluster, '1', '2', '4', '5')
  cluster.receive(refusal(last.index, { term: 2, index: commit }, true))
  cluster.tick('1', 2)
  cluster.settle()
  expect(peer(cluster, '3')?.matchIndex).toBe(last.index)
  expect(cluster.core('1').fullStatus.commit).toBe(commit)
  cluster.heal()
  cluster.tick('1', 4)
  cluster.settle()
  expect(cluster.core('1').fullStatus.commit).toBe(last.index)
})

test('a node with a missing tail does not campaign for leadership, even if the leader asks it to', () => {
  const cluster = led()
  cluster.crash('2')
  cluster.damage('2', 3, { term: 2, index: Number.MAX_SAFE_INTEGER })
  cluster.restart('2')
  cluster.receive({
    type: 'heartbeatRequest',
    from: '1',
    to: '2',
    term: 2,
    commit: 0,
    readSequence: 0,
  })
  cluster.receive({ type: 'timeoutNow', from: '1', to: '2', term: 2 })
  expect(cluster.core('2').fullStatus).toMatchObject({ role: 'follower', term: 2 })
})

test('the log end that a leader measured limits the missing tail of a node only if the leader measured it after the current start of the node', () => {
  const cluster = led()
  const wholeTerm = { term: 2, index: Number.MAX_SAFE_INTEGER }
  const heartbeat = (boot: number): Message => ({
    type: 'heartbeatRequest',
    from: '1',
    to: '2',
    term: 2,
    commit: 0,
    readSequence: 0,
    attested: { boot, lastIndex: 3 },
  })
  cluster.crash('2')
  cluster.damage('2', 3, wholeTerm)
  cluster.restart('2')
  const { boot } = cluster.platter('2')
  cluster.receive(heartbeat(boot - 1))
  expect(cluster.core('2').fullStatus.owed).toEqual(wholeTerm)
  cluster.receive(heartbeat(boot))
  cluster.settle()
  expect(cluster.core('2').fullStatus.owed).toBeNull()
})

test('the record of a missing tail survives restarts until the log covers the missing tail', () => {
  const cluster = led()
  cluster.crash('2')
  cluster.damage('2', 4, null)
  for (let start = 1; start <= 3; start += 1) {
    cluster.restart('2')
    expect(cluster.core('2').fullStatus.owed).toEqual({ term: 2, index: 6 })
    cluster.crash('2')
  }
  cluster.restart('2')
  cluster.tick('1', 2)
  cluster.settle()
  expect(cluster.core('2').fullStatus).toMatchObject({ owed: null, last: { term: 2, index: 6 } })
  expect(cluster.platter('2').owed).toBeNull()
})
