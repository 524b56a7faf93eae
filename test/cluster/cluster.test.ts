import { afterEach, expect, test } from 'vitest'

import { earlierOfLocalAndQuorumNowMs, systemClock } from '../../src/lib/clock.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { AppliedProposal } from '../../src/ports/proposer.ts'
import {
  command,
  formCluster,
  type StartChanges,
  type TestCluster,
  type TestNode,
} from './cluster-fixture.ts'
import { until } from './mesh-fixture.ts'
import { anySession } from '../support/commands.ts'

const clusters: TestCluster[] = []

async function cluster(size: number): Promise<TestCluster> {
  const formed = await formCluster(size)
  clusters.push(formed)
  return formed
}

async function runningCluster(size: number, changes: StartChanges = {}): Promise<TestCluster> {
  const formed = await cluster(size)
  await Promise.all(formed.ids.map(async (id) => await formed.start(id, changes)))
  await formed.leader()
  return formed
}

afterEach(async () => {
  await Promise.all(clusters.splice(0).map(async (formed) => await formed.stop()))
})

test('three controllers elect a leader, and each controller accepts writes and applies those of all controllers', async () => {
  const formed = await runningCluster(3)
  const writes: Promise<AppliedProposal>[] = []
  for (const id of formed.ids) {
    for (let i = 0; i < 50; i += 1) {
      writes.push(formed.node(id).clusterNode.propose(command(`${id}-${i}`)))
    }
  }
  const results = await Promise.all(writes)
  expect(new Set(results.map(({ index }) => index)).size).toBe(150)
  expect(results.every(({ outcome }) => outcome.ok)).toBe(true)
  const [first, ...others] = formed.ids.map((id) => formed.node(id))
  await until('all have applied all', () =>
    formed.ids.every((id) => formed.node(id).effects.length === 150),
  )
  for (const other of others) expect(other.effects).toEqual(first?.effects)
  // Only the controller that received a write audits it.
  const told = formed.ids.flatMap((id) => formed.node(id).audited.map(({ index }) => index))
  for (const id of formed.ids) expect(formed.node(id).audited).toHaveLength(50)
  expect(new Set(told)).toEqual(new Set(results.map(({ index }) => index)))
})

test('a cluster of one acknowledges its own writes', async () => {
  const formed = await runningCluster(1)
  const { clusterNode, effects } = await formed.leader()
  expect(await clusterNode.propose(command('alone'))).toMatchObject({ outcome: { ok: true } })
  expect(effects).toEqual(['alone'])
  expect(await clusterNode.readIndex()).toBeGreaterThanOrEqual(2)
  await until('its election is counted', () => clusterNode.vitals.elections > 0)
  expect(clusterNode.vitals).toMatchObject({ elections: 1, leaderChanges: 1 })
})

/**
 * Proposes one write after the other until stopped; returns those that were acknowledged and those
 * whose outcome is unknown.
 */
function writer(node: TestNode, name: string) {
  const done: string[] = []
  const doubtful: string[] = []
  let isOver = false
  const run = (async () => {
    for (let i = 0; !isOver; i += 1) {
      const text = `${name}-${i}`
      try {
        await node.clusterNode.propose(command(text))
        done.push(text)
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        if (error.code === 'OUTCOME_UNKNOWN') doubtful.push(text)
        // A refusal comes immediately, so the next attempt must wait for another turn of the event
        // loop.
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  })()
  const stop = async (): Promise<void> => {
    isOver = true
    await run
  }
  return { done, doubtful, stop }
}

test('when the leader dies, every write in progress at another controller takes effect once and is then acknowledged', async () => {
  const formed = await runningCluster(3)
  const dying = await formed.leader()
  const rest = formed.ids.filter((id) => id !== dying.id).map((id) => formed.node(id))
  const writers = rest.flatMap((node) =>
    Array.from({ length: 8 }, (_, i) => writer(node, `${node.id}-w${i}`)),
  )
  await until('writes flow', () => writers.every(({ done }) => done.length > 5))
  await dying.kill()
  formed.nodes.delete(dying.id)
  await formed.leader()
  const doneBefore = writers.map(({ done }) => done.length)
  await until('writes flow again', () =>
    writers.every(({ done }, i) => done.length > (doneBefore[i] ?? 0) + 5),
  )
  await Promise.all(writers.map(async ({ stop }) => await stop()))
  expect(writers.flatMap(({ doubtful }) => doubtful)).toEqual([])
  const acknowledged = writers.flatMap(({ done }) => done)
  await until('the survivors agree', () =>
    rest.every(({ effects }) => effects.length >= acknowledged.length),
  )
  for (const { effects } of rest) {
    expect(new Set(effects).size).toBe(effects.length)
    expect(effects.filter((text) => !text.startsWith(dying.id)).sort()).toEqual(acknowledged.sort())
  }
})

test('a handover before a planned stop transfers leadership, and leaves no write with an unknown outcome', async () => {
  const formed = await runningCluster(3)
  const leaving = await formed.leader()
  const writers = formed.ids.map((id) => writer(formed.node(id), id))
  await until('writes flow', () => writers.every(({ done }) => done.length > 5))
  const elections = () =>
    formed.ids.reduce((sum, id) => sum + formed.node(id).clusterNode.vitals.elections, 0)
  const electionsBefore = elections()
  await leaving.clusterNode.handOver()
  expect(leaving.clusterNode.status().role).not.toBe('leader')
  await until('the election of the new leader is counted', () => elections() > electionsBefore)
  const before = writers.map(({ done }) => done.length)
  await until('writes flow again, from the controller that led too', () =>
    writers.every(({ done }, i) => done.length > (before[i] ?? 0) + 5),
  )
  await Promise.all(writers.map(async ({ stop }) => await stop()))
  expect(writers.flatMap(({ doubtful }) => doubtful)).toEqual([])
})

async function problemOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'none'
  } catch (error) {
    if (error instanceof Problem) return error.code
    throw error
  }
}

test('a write that was never sent to a leader fails with CLUSTER_NO_LEADER, and does not take effect later', async () => {
  const formed = await cluster(3)
  const clusterNode = {
    proposeTimeoutMs: 2000,
    leaderlessMsMax: 800,
    readTimeoutMs: 300,
  }
  const alone = await formed.start('n1', { clusterNode })
  expect(await problemOf(alone.clusterNode.propose(command('nobody')))).toBe('CLUSTER_NO_LEADER')
  expect(await problemOf(alone.clusterNode.readIndex())).toBe('CLUSTER_NO_LEADER')
  await until('it has been without one for long', () => alone.clusterNode.leaderContactMs() > 800)
  // After the first write has waited, later ones fail immediately.
  let hasWaited = false
  const timer = setTimeout(() => (hasWaited = true), clusterNode.proposeTimeoutMs / 2)
  expect(await problemOf(alone.clusterNode.propose(command('nobody')))).toBe('CLUSTER_NO_LEADER')
  clearTimeout(timer)
  expect(hasWaited).toBe(false)
  // A write that was given up must not take effect when the other members start.
  await formed.start('n2')
  await formed.start('n3')
  await formed.leader()
  await until('it takes part', () => alone.clusterNode.leaderId() !== null)
  await alone.clusterNode.propose(command('later'))
  expect(alone.effects).toEqual(['later'])
})

test('a write that a leader accepted but could not commit has an unknown outcome, not a failure', async () => {
  // On a busy machine, the leader must not step down before the others have stopped.
  const core = { electionTimeoutTicks: 60, electionTimeoutTicksMax: 80 }
  const formed = await runningCluster(3, {
    clusterNode: { proposeTimeoutMs: 500 },
    host: { core },
  })
  const leader = await formed.leader()
  const others = formed.ids.filter((id) => id !== leader.id)
  await Promise.all(others.map(async (id) => await formed.node(id).kill()))
  expect(await problemOf(leader.clusterNode.propose(command('doubt')))).toBe('OUTCOME_UNKNOWN')
  expect(leader.effects).toEqual([])
})

test('a full window of outstanding writes refuses further writes until earlier ones have completed, and one caller can fill only a part of it', async () => {
  const formed = await runningCluster(3, { clusterNode: { outstandingMax: 10 } })
  const { clusterNode } = await formed.leader()
  const write = (i: number) => {
    const made = command(`${i}`)
    const actor = anySession({ identityId: `caller ${i}` })
    return problemOf(clusterNode.propose({ ...made, actor }))
  }
  const results = await Promise.all(Array.from({ length: 11 }, (_, i) => write(i)))
  expect(results.filter((result) => result === 'none').length).toBe(10)
  expect(results.at(-1)).toBe('SERVER_TOO_MANY_REQUESTS')
  expect(await problemOf(clusterNode.propose(command('after')))).toBe('none')
  const ofOne = await Promise.all(
    Array.from({ length: 10 }, (_, i) => problemOf(clusterNode.propose(command(`of one ${i}`)))),
  )
  expect(ofOne.filter((result) => result === 'none').length).toBe(8)
})

test('a linearizable read on any controller sees every write that completed before it', async () => {
  const formed = await runningCluster(3)
  for (let i = 0; i < 20; i += 1) {
    const writing = formed.node(formed.ids[i % 3] ?? '')
    const { index } = await writing.clusterNode.propose(command(`${i}`))
    for (const id of formed.ids) {
      const { clusterNode, machine, effects } = formed.node(id)
      const reads = await Promise.all([clusterNode.readIndex(), clusterNode.readIndex()])
      for (const read of reads) expect(read).toBeGreaterThanOrEqual(index)
      expect(await machine.waitForApplied(Math.max(...reads), 5000)).toBe(true)
      expect(effects).toContain(`${i}`)
    }
  }
})

test('every controller lists all members with their replication progress, including disconnected members', async () => {
  const formed = await runningCluster(3)
  const leader = await formed.leader()
  for (let i = 0; i < 70; i += 1) await leader.clusterNode.propose(command(`${i}`))
  await until('all see all, with equal digests', () =>
    formed.ids.every((id) => {
      const members = formed.node(id).clusterNode.members()
      const digests = new Set(members.map(({ progress }) => progress?.digest ?? id))
      return (
        members.length === 3 &&
        members.every(
          ({ connected, progress }) => connected && (progress?.digestIndex ?? 0) >= 64,
        ) &&
        digests.size === 1 &&
        members.filter(({ leader: leads }) => leads).length === 1
      )
    }),
  )
  const members = leader.clusterNode.members()
  expect(members.map(({ id }) => id)).toEqual(['n1', 'n2', 'n3'])
  for (const { voter, version, startedAtMs, certificatePem } of members) {
    expect({ voter, version }).toEqual({ voter: true, version: '1.0.0' })
    expect(startedAtMs).toBeGreaterThan(1_700_000_000_000)
    expect(certificatePem).toContain('BEGIN CERTIFICATE')
  }
  expect(leader.clusterNode.status().alarms).toEqual([])
  const gone = formed.ids.find((id) => id !== leader.id) ?? ''
  await formed.node(gone).kill()
  const left = formed.ids.filter((id) => id !== gone)
  await until(
    'both others know',
    () =>
      left.every((id) =>
        formed
          .node(id)
          .clusterNode.members()
          .every((member) => member.connected === (member.id !== gone)),
      ),
    5000,
  )
  await formed.start(gone)
  await until('both others know that it is back', () =>
    left.every((id) =>
      formed
        .node(id)
        .clusterNode.members()
        .every(({ connected }) => connected),
    ),
  )
})

test('a member that was disconnected while the log was compacted receives a snapshot and continues without a restart', async () => {
  const formed = await cluster(3)
  const changes: StartChanges = {
    persistEntries: 300,
    clusterNode: { retention: { entries: 100, bytes: 20_000, catchUpBytes: 20_000 } },
  }
  await formed.start('n1', changes)
  await formed.start('n2', changes)
  const leader = await formed.leader()
  for (const { machine } of formed.nodes.values()) machine.snapshotPaddingBytes = 3_000_000
  for (let i = 0; i < 20; i += 1) {
    const batch = Array.from({ length: 50 }, (_, k) => command(`${i}-${k}`))
    await Promise.all(batch.map(async (input) => await leader.clusterNode.propose(input)))
  }
  const late = await formed.start('n3', changes)
  const writing = writer(leader, 'during')
  await until('it has caught up', () => late.machine.count >= 1000 + writing.done.length)
  await until('it follows', () => late.machine.count > 1010)
  expect(late.log.lines.some((line) => line.includes('received snapshot'))).toBe(true)
  expect(late.effects.length).toBeLessThan(1000)
  expect(late.fatal).toEqual([])
  const own = await late.clusterNode.propose(command('from the late one'))
  expect(own.outcome.ok).toBe(true)
  await writing.stop()
  expect(writing.doubtful).toEqual([])
  await until('all agree', () => {
    const digests = formed.ids.map((id) => formed.node(id).machine.digests())
    return digests.every(({ index, state }) => {
      return index === digests[0]?.index && state === digests[0].state
    })
  })
})

test('an entry that cannot be applied is reported as a fatal error and raises an alarm, and the controller accepts no further writes', async () => {
  const formed = await runningCluster(1)
  const node = await formed.leader()
  node.machine.onCommand = () => {
    throw new Error('unknown kind 99')
  }
  expect(await problemOf(node.clusterNode.propose(command('from the future')))).toBe(
    'OUTCOME_UNKNOWN',
  )
  expect(node.fatal.map(({ message }) => message)).toEqual([
    expect.stringContaining('unknown kind 99'),
  ])
  expect(node.clusterNode.status().alarms).toMatchObject([{ code: 'APPLY_STOPPED' }])
  expect(await problemOf(node.clusterNode.propose(command('next')))).toBe('CLUSTER_NO_LEADER')
})

test('the other members refuse a removed member', async () => {
  const formed = await runningCluster(3)
  const leader = await formed.leader()
  const removed = formed.node(formed.ids.find((id) => id !== leader.id) ?? '')
  const target = leader.machine.currentConfiguration()
  target.members = target.members.filter(({ id }) => id !== removed.id)
  // A leader changes no configuration before it has committed an entry of its own term.
  await leader.clusterNode.propose(command('first'))
  expect(await leader.clusterNode.changeConfiguration(target)).toBeNull()
  await until('it is out', () => leader.clusterNode.members().length === 2)
  const others = formed.ids.filter((id) => id !== removed.id)
  await until('the others say so to whoever reads their log', () =>
    others.some((id) =>
      formed.node(id).log.lines.some((line) => line.includes('not a member of this cluster')),
    ),
  )
  await until('nobody lists it', () =>
    others.every((id) => formed.node(id).clusterNode.members().length === 2),
  )
  const before = leader.clusterNode.status().term
  expect((await leader.clusterNode.propose(command('without it'))).outcome.ok).toBe(true)
  expect(leader.clusterNode.status().term).toBe(before)
  expect(removed.effects).not.toContain('without it')
})

test('a controller that restarts takes the members from its log, not only from its applied state', async () => {
  const formed = await runningCluster(3)
  const leader = await formed.leader()
  const changed = formed.node(formed.ids.find((id) => id !== leader.id) ?? '')
  await leader.clusterNode.propose(command('first'))
  const target = leader.machine.currentConfiguration()
  for (const member of target.members) if (member.id === changed.id) member.voter = false
  expect(await leader.clusterNode.changeConfiguration(target)).toBeNull()
  const isVoter = (): boolean | undefined =>
    formed
      .node(changed.id)
      .clusterNode.members()
      .find(({ id }) => id === changed.id)?.voter
  await until('it is a learner', () => isVoter() === false)
  await changed.kill()
  await formed.start(changed.id)
  await until('it has started', () => isVoter() !== undefined)
  expect(isVoter()).toBe(false)
})

test('the clock of the majority does not follow a jump of the leader’s clock', async () => {
  const formed = await cluster(3)
  const jumpedMs = new Map<string, number>()
  const clockOf = (id: string) => ({
    nowMs: () => systemClock.nowMs() + (jumpedMs.get(id) ?? 0),
    monotonicMs: () => systemClock.monotonicMs(),
  })
  await Promise.all(
    formed.ids.map(async (id) => await formed.start(id, { clock: clockOf(id), priority: 100 })),
  )
  const { id, clusterNode } = await formed.leader()
  const errorMs = (): number => {
    const nowMs = earlierOfLocalAndQuorumNowMs({ cluster: clusterNode, clock: clockOf(id) })
    return nowMs === null ? Infinity : Math.abs(nowMs - systemClock.nowMs())
  }
  const isRight = (): boolean => errorMs() < 10_000
  await until('the clocks of the others are known', isRight)
  const dayMs = 24 * 60 * 60_000
  jumpedMs.set(id, dayMs)
  expect(isRight()).toBe(true)
  await until('the others know the new time of the leader', () => {
    const other = formed.ids.find((one) => one !== id) ?? ''
    const views = formed.node(other).clusterNode.members()
    return (views.find((view) => view.id === id)?.vitals?.clockOffsetMs ?? 0) > dayMs / 2
  })
  expect(isRight()).toBe(true)
})
