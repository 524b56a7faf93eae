import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { defaultLeadershipTiming } from '../../src/cluster/membership/leadership.ts'
import { LeadershipBalancer } from '../../src/cluster/membership/leadership-balancer.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { KnownMembersFile } from '../../src/store/folder/known-members-file.ts'
import { command, formCluster, type TestCluster, type TestNode } from './cluster-fixture.ts'
import { until } from './mesh-fixture.ts'

let folder: string
let cluster: TestCluster | null = null
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-members-'))
})
afterEach(async () => {
  await cluster?.stop()
  cluster = null
  rmSync(folder, { recursive: true, force: true })
})

const addressesOf = (id: string) => [
  { api: 'edge-client', url: `https://${id}.test/edge/client/v1`, version: 'v1' },
]
const rowOf = (node: TestNode, id: string) =>
  node.clusterNode.members().find((member) => member.id === id)

test('a disconnected member is listed with its last description, even after a restart of the controller that lists it', async () => {
  cluster = await formCluster(2)
  const memory = new KnownMembersFile(folder)
  const n1 = await cluster.start('n1', { memory, apiAddresses: addressesOf('n1') })
  const n2 = await cluster.start('n2', { apiAddresses: addressesOf('n2') })
  await until('n1 sees n2 and can be written through', () => {
    const row = rowOf(n1, 'n2')
    return row?.connected === true && !row.readOnly
  })
  const startedAtMs = rowOf(n1, 'n2')?.startedAtMs
  await n2.kill()
  await until('n1 sees that n2 has gone', () => rowOf(n1, 'n2')?.connected === false, 5000)
  expect(rowOf(n1, 'n2')).toMatchObject({ apiAddresses: addressesOf('n2'), readOnly: true })
  await until('n1 has no leader', () => rowOf(n1, 'n1')?.readOnly === true)
  await n1.kill()

  const again = await cluster.start('n1', { memory, apiAddresses: addressesOf('n1') })
  await until('n1 is up', () => again.clusterNode.members().length === 2)
  expect(rowOf(again, 'n2')).toMatchObject({
    connected: false,
    apiAddresses: addressesOf('n2'),
    startedAtMs,
    lastContactMs: null,
    readOnly: true,
  })
  expect(again.clusterNode.health()).toMatchObject({
    failureTolerance: -1,
    failureToleranceMax: 0,
    voters: 2,
    votersConnected: 1,
    nextRisk: 'no quorum: writes wait until n2 is reachable',
  })
})

test('saved member descriptions can be read again; incomplete descriptions and a damaged file are ignored', async () => {
  const file = new KnownMembersFile(folder)
  expect(file.load().size).toBe(0)
  const said = { version: 'v1', startedAtMs: 5, apiAddresses: addressesOf('a'), certificatePem: '' }
  await file.save(new Map([['a', said]]))
  expect([...file.load()]).toEqual([['a', said]])
  const path = join(folder, 'known-members.json')
  writeFileSync(path, JSON.stringify({ a: said, b: { version: 'v1' }, c: null, d: [] }))
  expect([...file.load().keys()]).toEqual(['a'])
  for (const text of ['{"a":', 'null', '[1]', '7']) {
    writeFileSync(path, text)
    expect(file.load().size).toBe(0)
  }
})

test('every controller learns the replication progress of the others within five seconds', async () => {
  cluster = await formCluster(3)
  const nodes = await Promise.all(cluster.ids.map((id) => (cluster as TestCluster).start(id)))
  const leader = await cluster.leader()
  const { index } = await leader.clusterNode.propose(command('x'))
  await until(
    'all know of all',
    () =>
      nodes.every(({ clusterNode }) =>
        clusterNode.members().every(({ progress }) => (progress?.applied ?? 0) >= index),
      ),
    5000,
  )
  const health = leader.clusterNode.health()
  expect(health).toMatchObject({
    role: 'leader',
    failureTolerance: 1,
    failureToleranceMax: 1,
    lagEntries: 0,
    lagMs: 0,
  })
  expect(health.members.map(({ connected, voter }) => connected && voter)).toEqual([
    true,
    true,
    true,
  ])
  expect(leader.clusterNode.vitals).toMatchObject({ droppedFrames: 0 })
  expect(leader.clusterNode.vitals.proposalsAccepted).toBeGreaterThan(0)
})

test('leadership is transferred to the member with the highest priority, but stays at a member to which an operator transferred it', async () => {
  cluster = await formCluster(3)
  const { ids } = cluster
  const stewards = new Map<string, LeadershipBalancer>()
  const timing = {
    ...defaultLeadershipTiming,
    healthyMsMin: 300,
    leadsMsMin: 300,
    priorityHoldMs: 1000,
  }
  for (const id of ids) {
    const priority = id === 'n3' ? 90 : 50
    const { clusterNode, log } = await cluster.start(id, { priority })
    const steward = new LeadershipBalancer(
      { ...timing, priority, slowFsyncMs: 60_000, slowLoopMs: 60_000 },
      {
        cluster: clusterNode,
        soft: clusterNode.soft,
        clock: systemClock,
        log: log.log,
        matchIndex: (of) =>
          clusterNode.peerStatuses().find((peer) => peer.id === of)?.matchIndex ?? null,
        transfer: (to) => clusterNode.transferLeadership(to),
      },
    )
    steward.start()
    stewards.set(id, steward)
  }
  try {
    const n3 = cluster.node('n3').clusterNode
    await until('n3 leads', () => n3.status().role === 'leader')
    await n3.transferLeadership('n1')
    stewards.get('n3')?.pin()
    const n1 = cluster.node('n1').clusterNode
    await until('n1 leads', () => n1.status().role === 'leader')
    const { term } = n1.status()
    // Waits much longer than a transfer by priority would take if it were not blocked.
    const startMs = performance.now()
    await until('a preference would have had its time', () => performance.now() > startMs + 2000)
    for (let look = 0; look < 5; look += 1) await stewards.get('n1')?.look()
    expect(n1.status()).toMatchObject({ role: 'leader', term })
  } finally {
    for (const steward of stewards.values()) steward.stop()
  }
})
