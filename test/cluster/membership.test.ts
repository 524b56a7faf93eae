import { afterEach, expect, onTestFinished, test, vi } from 'vitest'

import { command } from './cluster-fixture.ts'
import { until } from './mesh-fixture.ts'
import { Problem } from '../../src/lib/problems.ts'
import { anOperator } from '../support/recorded-actions.ts'
import { ManagedCluster } from './membership-fixture.ts'
import { PATIENCE_MS } from '../support/patience.ts'

// Tests that members join and leave over real gRPC and TLS, by requests to any controller.

const clusters: ManagedCluster[] = []

async function form(size: number, joinTimeoutMs?: number): Promise<ManagedCluster> {
  const managed = await ManagedCluster.form(size, joinTimeoutMs)
  clusters.push(managed)
  return managed
}

async function joinAll(managed: ManagedCluster, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) await managed.admit(id)
  await Promise.all(ids.map(async (id) => await managed.join(id)))
}

/** Repeats a request while a busy machine has no leader; throws every other refusal. */
async function onceLed<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const isLeaderless = error instanceof Problem && error.code === 'CLUSTER_NO_LEADER'
      if (!isLeaderless || performance.now() > deadline) throw error
    }
  }
}

const remove = (id: string) => ({ verb: 'remove', id, isCompromised: false }) as const

afterEach(async () => {
  await Promise.all(clusters.splice(0).map(async (managed) => await managed.stop()))
})

test('a cluster grows from one to three and five controllers and shrinks to three, and accepts a write with five and with three', async () => {
  const managed = await form(1)
  await joinAll(managed, 'n2', 'n3')
  await managed.untilVoters('n1', 'n2', 'n3')
  await joinAll(managed, 'n4', 'n5')
  await managed.untilVoters('n1', 'n2', 'n3', 'n4', 'n5')
  const { clusterNode } = managed.cluster.node('n5')
  expect(await clusterNode.propose(command('five'))).toMatchObject({ outcome: { ok: true } })

  const control = managed.control('n2')
  const confirmation = 'remove n5 and tolerate 1 failure'
  await expect(control.change(remove('n5'), null, anOperator)).rejects.toMatchObject({
    code: 'TOLERANCE_REFUSED',
    detail: expect.stringContaining(confirmation) as string,
  })
  expect(await control.change(remove('n5'), confirmation, anOperator)).toMatchObject({
    isNeeded: true,
  })
  expect(await control.change(remove('n4'), null, anOperator)).toMatchObject({
    votersAfter: ['n1', 'n2', 'n3'],
    confirmation: null,
  })
  await managed.untilVoters('n1', 'n2', 'n3')
  await until('both removals are settled', () => managed.settled.length === 2)
  expect([managed.isAdmitted('n4'), managed.isAdmitted('n5')]).toEqual([false, false])
  const first = managed.cluster.node('n1').clusterNode
  await until(
    'nothing is left to settle',
    () => first.configuration().record.departed.length === 0 && first.configuration().isCommitted,
  )
  expect(await first.propose(command('three'))).toMatchObject({ outcome: { ok: true } })
})

test('a leader that is to be removed transfers leadership first, and the controller that received the request returns the response', async () => {
  const managed = await form(3)
  const leader = await managed.cluster.leader()
  const confirmation = `remove ${leader.id} and tolerate 0 failures`
  const rest = managed.cluster.ids.filter((id) => id !== leader.id)
  const change = managed.control(leader.id).change(remove(leader.id), confirmation, anOperator)
  await until('the others are without it', () =>
    rest.every((id) => {
      const { record } = managed.cluster.node(id).clusterNode.configuration()
      return record.outgoingVoters.length === 0 && record.members.length === 2
    }),
  )
  managed.management(leader.id).onSelfRemoved()
  expect(await change).toMatchObject({ votersAfter: rest })
  await until('one of them leads', () =>
    rest.some((id) => managed.cluster.node(id).clusterNode.status().role === 'leader'),
  )
  const asked = managed.control(rest[0] ?? '')
  expect(await asked.change(remove(leader.id), null, anOperator)).toMatchObject({ isNeeded: false })
  await until('the removal is settled', () => managed.settled.length === 1)
  expect(managed.settled).toMatchObject([{ id: leader.id, isCompromised: false }])
})

test('a new leader promotes a learner whose status it has not yet received', async () => {
  const managed = await form(3)
  await managed.admit('n4', false)
  await managed.join('n4')
  await managed.untilMember('n4')
  for (const id of ['n1', 'n2', 'n3', 'n1', 'n2', 'n3']) {
    await managed.untilLeader(id)
    const change = { verb: 'promote', id: 'n4' } as const
    expect(await onceLed(() => managed.control(id).change(change, null, anOperator))).toMatchObject(
      { votersAfter: ['n1', 'n2', 'n3', 'n4'] },
    )
    const back = { verb: 'demote', id: 'n4' } as const
    await onceLed(() => managed.control(id).change(back, null, anOperator))
  }
})

test('a dead voter is replaced by a learner, and each membership change can be requested again', async () => {
  const managed = await form(3)
  await managed.admit('n4', false)
  await managed.join('n4')
  const leader = await managed.cluster.leader()
  const [dead, other] = managed.cluster.ids.filter((id) => id !== leader.id)
  if (dead === undefined || other === undefined) throw new Error('three were formed')
  await managed.kill(dead)
  const replace = { verb: 'replace', oldId: dead, newId: 'n4' } as const
  const control = managed.control(other)
  await managed.untilMember('n4')
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      expect(await control.change(replace, null, anOperator)).toMatchObject({ isNeeded: true })
      break
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
  }
  await managed.untilVoters(leader.id, other, 'n4')
  expect(await control.change(replace, null, anOperator)).toMatchObject({ isNeeded: false })
  const promote = { verb: 'promote', id: 'n4' } as const
  expect(await control.change(promote, null, anOperator)).toMatchObject({ isNeeded: false })
  const demote = { verb: 'demote', id: 'n4' } as const
  const confirmation = 'demote n4 and tolerate 0 failures'
  expect(await control.change(demote, confirmation, anOperator)).toMatchObject({ isNeeded: true })
  expect(await control.change(demote, null, anOperator)).toMatchObject({ isNeeded: false })
  expect(await control.change(promote, null, anOperator)).toMatchObject({ isNeeded: true })
  expect(await control.change(remove(dead), null, anOperator)).toMatchObject({ isNeeded: false })
})

test('membership changes that are requested at the same time succeed or are refused as MEMBERSHIP_BUSY', async () => {
  const managed = await form(3)
  await joinAll(managed, 'n4', 'n5')
  await managed.untilVoters('n1', 'n2', 'n3', 'n4', 'n5')
  const confirmation = 'remove n5 and tolerate 1 failure'
  const smaller = 'remove n4 and tolerate 1 failure'
  const asked = await Promise.all([
    answerOf(() => managed.control('n1').change(remove('n5'), confirmation, anOperator)),
    answerOf(() => managed.control('n2').change(remove('n5'), confirmation, anOperator)),
    answerOf(() => managed.control('n3').change(remove('n4'), smaller, anOperator)),
  ])
  for (const answer of asked) expect(['done', 'MEMBERSHIP_BUSY']).toContain(answer)
  const isGone = { n4: asked[2] === 'done', n5: asked[0] === 'done' || asked[1] === 'done' }
  expect(isGone.n4 || isGone.n5).toBe(true)
  const left = (['n4', 'n5'] as const).filter((id) => !isGone[id])
  await managed.untilVoters('n1', 'n2', 'n3', ...left)
})

/** The final result for an operator who repeats a request after a change of leader. */
async function answerOf(change: () => Promise<unknown>): Promise<unknown> {
  for (;;) {
    try {
      await change()
      return 'done'
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code !== 'CLUSTER_NO_LEADER' && error.code !== 'OUTCOME_UNKNOWN') return error.code
    }
  }
}

test('a leadership transfer through a follower moves leadership to the named voter, and is refused for a learner and for an unknown controller', async () => {
  const managed = await form(3)
  await managed.admit('n4', false)
  await managed.join('n4')
  const leader = await managed.cluster.leader()
  const [first, second] = managed.cluster.ids.filter((id) => id !== leader.id)
  if (first === undefined || second === undefined) throw new Error('three were formed')
  const control = managed.control(first)
  const moved = (target: string | null): Promise<string> =>
    control.transferLeadership(target, anOperator)
  expect(await moved(second)).toBe(second)
  expect(managed.cluster.node(first).clusterNode.leaderId()).toBe(second)
  expect(await moved(second)).toBe(second)
  expect(await moved(null)).not.toBe(second)
  await expect(control.transferLeadership('n9', anOperator)).rejects.toMatchObject({
    code: 'NOT_FOUND',
  })
  await until('n4 is listed', () =>
    managed.cluster
      .node(first)
      .clusterNode.configuration()
      .record.members.some(({ id }) => id === 'n4'),
  )
  await expect(control.transferLeadership('n4', anOperator)).rejects.toMatchObject({
    code: 'TRANSFER_LEADERSHIP_ERROR',
  })
})

test('a leadership transfer is repeated until the named voter leads, even if another leader has to repeat it', async () => {
  const managed = await form(3)
  const leader = await managed.cluster.leader()
  const [asked, target] = managed.cluster.ids.filter((id) => id !== leader.id)
  if (asked === undefined || target === undefined) throw new Error('three were formed')
  const { clusterNode } = leader
  const transfer = clusterNode.transferLeadership.bind(clusterNode)
  const attempts: string[] = []
  // Simulates a busy machine: the target catches up too late, and another voter wins the election.
  clusterNode.transferLeadership = async (to) => {
    attempts.push(String(to))
    if (attempts.length > 1) return await transfer(asked)
    const detail = `${String(to)} did not become leader in time`
    throw new Problem('TRANSFER_LEADERSHIP_ERROR', { detail })
  }
  expect(await managed.control(asked).transferLeadership(target, anOperator)).toBe(target)
  expect(attempts).toEqual([target, target])
  expect((await managed.cluster.leader()).id).toBe(target)
})

test('a leadership transfer that never succeeds is refused with the reason, the number of attempts and the leader', async () => {
  const managed = await form(3)
  const leader = await managed.cluster.leader()
  const target = managed.cluster.ids.find((id) => id !== leader.id) ?? ''
  const { clusterNode } = leader
  const transfer = vi.spyOn(clusterNode, 'transferLeadership').mockImplementation(() => {
    managed.aheadMs += 6000
    const detail = `${target} did not become leader in time`
    return Promise.reject(new Problem('TRANSFER_LEADERSHIP_ERROR', { detail }))
  })
  onTestFinished(() => transfer.mockRestore())
  await expect(
    managed.control(leader.id).transferLeadership(target, anOperator),
  ).rejects.toMatchObject({
    code: 'TRANSFER_LEADERSHIP_ERROR',
    detail: expect.stringMatching(
      new RegExp(
        `^${target} did not become leader in time.*; [0-9]+ attempts in [0-9]+ s, and ${leader.id} still leads$`,
      ),
    ) as string,
  })
  expect(transfer.mock.calls.length).toBeGreaterThan(1)
})

test('a membership change succeeds after the death of the leader that started it', async () => {
  const managed = await form(3)
  await joinAll(managed, 'n4', 'n5')
  await managed.untilVoters('n1', 'n2', 'n3', 'n4', 'n5')
  const leader = await managed.cluster.leader()
  const rest = ['n1', 'n2', 'n3', 'n4', 'n5'].filter((id) => id !== leader.id)
  const [asked, leaving] = rest
  if (asked === undefined || leaving === undefined) throw new Error('five vote')
  const confirmation = `remove ${leaving} and tolerate 1 failure`
  const change = managed.control(asked).change(remove(leaving), confirmation, anOperator)
  await until(
    'the change is under way',
    () => leader.clusterNode.configuration().record.departed.length > 0,
  )
  await managed.kill(leader.id)
  await change
  expect(await managed.voters()).not.toContain(leaving)
  await until('the next leader settles it', () =>
    managed.settled.some(({ id, by }) => id === leaving && by !== leader.id),
  )
})

test('the next leader completes a removal that a leader started before it died, with the same parameters', async () => {
  const managed = await form(3)
  const leader = await managed.cluster.leader()
  const [leaving, ...rest] = managed.cluster.ids.filter((id) => id !== leader.id)
  if (leaving === undefined) throw new Error('three were formed')
  await joinAll(managed, 'n4')
  await managed.untilVoters('n1', 'n2', 'n3', 'n4')
  managed.stuckInSettling = leader.id
  const compromised = { verb: 'remove', id: leaving, isCompromised: true } as const
  await managed.control(leader.id).change(compromised, null, anOperator)
  expect(managed.settled).toEqual([])
  await managed.kill(leader.id)
  await until('the next leader has settled it', () => managed.settled.length > 0)
  expect(managed.settled[0]).toMatchObject({ id: leaving, isCompromised: true })
  expect([...rest, 'n4']).toContain(managed.settled[0]?.by)
})

test('a member with a lost disk returns automatically, first as a learner and then as a voter', async () => {
  const managed = await form(3)
  const leader = await managed.cluster.leader()
  const lost = managed.cluster.ids.find((id) => id !== leader.id)
  if (lost === undefined) throw new Error('three were formed')
  await leader.clusterNode.propose(command('before'))
  await managed.kill(lost)
  await until('it is out of contact', () =>
    leader.clusterNode.peerStatuses().some(({ id, isConnected }) => id === lost && !isConnected),
  )
  const storeId = new Uint8Array(16).fill(7)
  const node = await managed.comeBack(lost, storeId)
  const record = () =>
    leader.clusterNode.configuration().record.members.find((member) => member.id === lost)
  await until('it votes with the new disk', () => {
    const member = record()
    return member?.voter === true && Buffer.compare(member.storeId, storeId) === 0
  })
  await until('it has what it had', () => node.effects.includes('before'))
  expect(record()).toMatchObject({ voter: true, promote: false, returning: false })
})

test('a controller is refused if it is not admitted or already runs as a member, and its request fails if no member responds', async () => {
  const managed = await form(3)
  const addresses = managed.cluster.ids.map((id) => managed.cluster.node(id).address)
  const configuration = await managed.configuration()
  const stranger = await managed.cluster.startJoiner('n9', { configuration })
  expect(await managed.enter(stranger, addresses)).toMatchObject({
    outcome: 'refused',
    reason: 'not-admitted',
    detail: expect.stringContaining('flotilla cluster invite') as string,
  })
  const follower = managed.cluster.node('n2')
  const copy = { ...follower, startedAtMs: follower.startedAtMs - 1 }
  expect(await managed.enter(copy, addresses.slice(0, 1))).toMatchObject({
    outcome: 'refused',
    reason: 'store-in-use',
  })
  await expect(managed.enter(stranger, ['127.0.0.1:1'])).rejects.toMatchObject({
    code: 'PEER_UNREACHABLE',
    detail: expect.stringContaining('127.0.0.1:1') as string,
  })
})

test('a query distinguishes an admitted controller from a removed one, and admits neither', async () => {
  const managed = await form(3)
  const addresses = managed.cluster.ids.map((id) => managed.cluster.node(id).address)
  const configuration = await managed.configuration()
  const admitted = await managed.cluster.startJoiner('n4', { configuration })
  await managed.admit('n4')
  const before = await managed.configuration()
  expect(await managed.query(admitted, addresses)).toMatchObject({ reason: 'too-old' })
  expect(await managed.configuration()).toEqual(before)
  const running = await managed.query(managed.cluster.node('n2'), addresses)
  // The second decision comes from a member that sees the running process of n2.
  expect(['member', 'store-in-use']).toContain(
    running.outcome === 'refused' ? running.reason : running.outcome,
  )
  const removed = managed.cluster.node('n3')
  const confirmation = 'remove n3 and tolerate 0 failures'
  await onceLed(() => managed.control('n1').change(remove('n3'), confirmation, anOperator))
  expect(await managed.query(removed, addresses.slice(0, 2))).toMatchObject({
    outcome: 'refused',
    detail: expect.stringContaining('not a member as of configuration') as string,
  })
})

test('the admission of a controller is removed when its ticket expired before the controller connected', async () => {
  const managed = await form(1)
  await managed.admit('n2')
  managed.admittedIdsWithExpiredTickets = ['n1', 'n2']
  await until('it is dropped', () => managed.settled.some(({ id }) => id === 'n2'))
  expect(managed.isAdmitted('n2')).toBe(false)
  await managed.untilVoters('n1')
})

test('a learner that never connected and was to become a voter is removed together with its admission', async () => {
  const managed = await form(1, 500)
  await managed.admit('n2')
  const node = await managed.cluster.startJoiner('n2', {
    configuration: await managed.configuration(),
  })
  await node.kill()
  const answer = await managed.enter(node, [managed.cluster.node('n1').address])
  expect(answer.outcome).toBe('added')
  await until('it is dropped', () => managed.settled.some(({ id }) => id === 'n2'))
  expect(await managed.enter(node, [managed.cluster.node('n1').address])).toMatchObject({
    outcome: 'refused',
  })
})

test('each membership change, whether requested or automatic, is audited with its actor, target and outcome', async () => {
  const managed = await form(3)
  const control = managed.control('n2')
  const { id: leader } = await managed.cluster.leader()
  // If the leader were removed, it would transfer leadership first, which is audited as well.
  const one = leader === 'n3' ? 'n1' : 'n3'
  const [confirmation, why] = [`demote ${one} and tolerate 0 failures`, { by: 'uid:1000 (op)' }]
  await expect(control.change({ verb: 'demote', id: one }, null, anOperator)).rejects.toThrow()
  await control.change({ verb: 'demote', id: one }, confirmation, anOperator)
  await control.change({ verb: 'promote', id: one }, null, anOperator)
  await control.transferLeadership(one, anOperator)
  await joinAll(managed, 'n4')
  await managed.untilVoters('n1', 'n2', 'n3', 'n4')
  const told = managed.actions.all
  await until('the automatic changes are recorded', () => told.length === 9)
  await control.change(remove('n4'), null, anOperator)
  const itself = { target: 'n4', outcome: 'done', by: '' }
  expect(told.map(({ action }) => action)).toEqual([
    'member-demote',
    'member-demote',
    'member-demote',
    'member-promote',
    'member-promote',
    'leadership-transfer',
    'leadership-transfer',
    'member-add',
    'member-promote',
    'member-remove',
    'member-remove',
  ])
  expect(told[0]).toMatchObject({ ...why, target: one, outcome: 'TOLERANCE_REFUSED' })
  expect(told[1]).toMatchObject({ ...why, target: one, outcome: 'requested' })
  expect(told[2]).toMatchObject({ ...why, target: one, outcome: 'done' })
  expect(told[5]).toMatchObject({ ...why, target: one, outcome: 'requested' })
  expect(told[7]).toMatchObject(itself)
  expect(told[8]).toMatchObject({ ...itself, reason: 'it has caught up' })
  expect(told[10]).toMatchObject({ ...why, target: 'n4', outcome: 'done' })
})

test('a membership change and a leadership transfer that cannot be audited are not made', async () => {
  const managed = await form(3)
  managed.actions.refusal = new Problem('UNAUTHORIZED')
  const confirmation = 'demote n3 and tolerate 0 failures'
  const demote = { verb: 'demote', id: 'n3' } as const
  const asked = managed.control('n1').change(demote, confirmation, anOperator)
  await expect(asked).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  await managed.untilVoters('n1', 'n2', 'n3')
  const { id: leader } = await managed.cluster.leader()
  const given = managed.control('n1').transferLeadership(null, anOperator)
  await expect(given).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  expect((await managed.cluster.leader()).id).toBe(leader)
})
