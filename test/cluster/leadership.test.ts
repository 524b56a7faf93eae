import { expect, test } from 'vitest'

import {
  type LeaderCandidate,
  chooseLeader,
  defaultLeadershipTiming,
  type LeadershipView,
} from '../../src/cluster/membership/leadership.ts'
import { LeadershipBalancer } from '../../src/cluster/membership/leadership-balancer.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ClusterView, MemberView, MemberStats } from '../../src/ports/cluster-view.ts'
import { type OpenSoftTopic, type SoftState, softTopics } from '../../src/ports/soft-topics.ts'
import { RecordedLog } from './mesh-fixture.ts'

const candidate = (id: string, changes: Partial<LeaderCandidate> = {}): LeaderCandidate => ({
  id,
  priority: 50,
  isEligible: true,
  healthySinceMs: 0,
  isMuchHealthier: true,
  ...changes,
})

const choose = (view: Partial<LeadershipView>): string | null => {
  const choice = chooseLeader(
    {
      nowMs: 1_000_000,
      priority: 50,
      slowSinceMs: null,
      holds: { manualUntilMs: 0, priorityUntilMs: 0, slowUntilMs: 0 },
      candidates: [],
      ...view,
    },
    defaultLeadershipTiming,
  )
  return choice === null ? null : `${choice.to} ${choice.reason}`
}
const holds = { manualUntilMs: 0, priorityUntilMs: 0, slowUntilMs: 0 }

test('leadership stays at a member if no other member has a higher priority', () => {
  expect(choose({ candidates: [candidate('b'), candidate('c', { priority: 10 })] })).toBeNull()
})

test('the member with the highest priority takes over leadership once it was healthy for half a minute', () => {
  const candidates = [
    candidate('b', { priority: 60 }),
    candidate('c', { priority: 90, healthySinceMs: 970_001 }),
    candidate('d', { priority: 100, isEligible: false }),
    candidate('e', { priority: 100, healthySinceMs: null }),
  ]
  expect(choose({ candidates })).toBe('b priority')
  expect(choose({ candidates, nowMs: 1_000_001 })).toBe('c priority')
})

test('a manual leadership transfer blocks transfers by priority for a time, but not a transfer away from a slow leader', () => {
  const candidates = [candidate('b', { priority: 90 })]
  const pinned = { ...holds, manualUntilMs: 1_000_001 }
  expect(choose({ candidates, holds: pinned })).toBeNull()
  expect(choose({ candidates, holds: pinned, slowSinceMs: 990_000 })).toBe('b slow')
  expect(choose({ candidates, holds: pinned, nowMs: 1_000_001 })).toBe('b priority')
})

test('no automatic leadership transfer happens shortly after another one', () => {
  const candidates = [candidate('b', { priority: 90 })]
  for (const key of ['priorityUntilMs', 'slowUntilMs'] as const) {
    const held = { ...holds, [key]: 1_000_001 }
    expect(choose({ candidates, holds: held, slowSinceMs: 0 })).toBeNull()
    expect(choose({ candidates, holds: held, nowMs: 1_000_001 })).toBe('b priority')
  }
})

test('a slow leader is replaced only by a much healthier member, whatever its priority', () => {
  const slow = { slowSinceMs: 990_000, priority: 100 }
  const worse = candidate('b', { isMuchHealthier: false, priority: 80 })
  expect(choose({ ...slow, candidates: [worse, candidate('c', { priority: 1 })] })).toBe('c slow')
  expect(choose({ ...slow, candidates: [worse] })).toBeNull()
  expect(choose({ ...slow, slowSinceMs: 990_001, candidates: [candidate('c')] })).toBeNull()
})

const vitals: MemberStats = {
  leaderId: 'a',
  last: 5000,
  fsyncP99Ms: 1,
  loopDelayP99Ms: 1,
  priority: 50,
  clockOffsetMs: 0,
  isFailing: false,
}
const member = (id: string, of: Partial<MemberStats> = {}): MemberView => ({
  id,
  address: '',
  voter: true,
  leader: id === 'a',
  connected: true,
  version: '',
  apiAddresses: [],
  routerAddresses: [],
  certificatePem: '',
  featureLevel: 1,
  startedAtMs: 1,
  lastContactMs: 0,
  progress: null,
  readOnly: false,
  vitals: { ...vitals, ...of },
})

/**
 * A leader for which the test sets members and time. It records published values, and the test
 * publishes those of other members.
 */
function steward(priority = 50) {
  const stage = {
    nowMs: 0,
    members: [] as MemberView[],
    matches: new Map<string, number>(),
    moves: [] as string[],
    transferFails: false,
    said: new Map<string, unknown>(),
    hear: (_key: string, _value: unknown): void => undefined,
  }
  const cluster: ClusterView = {
    selfId: 'a',
    clusterId: 'c',
    generation: 1,
    featureLevel: 1,
    members: () => stage.members,
    leaderId: () => 'a',
    leaderContactMs: () => 0,
    quorumClockMs: () => null,
    readIndex: () => Promise.resolve(0),
  }
  const { encode, decode } = softTopics.leadership
  const topic: OpenSoftTopic<'leadership'> = {
    publish: (key, value) => {
      stage.said.set(key, decode(encode(value)))
      return true
    },
    withdraw: (key) => stage.said.delete(key),
    get: () => undefined,
    values: () => [],
    onChange: (listener) => {
      stage.hear = (key, value) => listener('b', key, value as Parameters<typeof listener>[2])
    },
  }
  const soft = { open: () => topic } as unknown as SoftState
  const subject = new LeadershipBalancer(
    { ...defaultLeadershipTiming, priority, slowFsyncMs: 250, slowLoopMs: 200 },
    {
      cluster,
      soft,
      clock: { nowMs: () => 0, monotonicMs: () => stage.nowMs },
      log: new RecordedLog().log,
      matchIndex: (id) => stage.matches.get(id) ?? null,
      transfer: (to) => {
        stage.moves.push(to)
        return stage.transferFails
          ? Promise.reject(new Problem('TRANSFER_LEADERSHIP_ERROR'))
          : Promise.resolve()
      },
    },
  )
  const run = async (ms: number): Promise<void> => {
    for (const endMs = stage.nowMs + ms; stage.nowMs < endMs;) {
      stage.nowMs += 1000
      await subject.look()
    }
  }
  return Object.assign(stage, { subject, run })
}

test('leadership is transferred to a member only after the member was continuously healthy and its log has caught up', async () => {
  const stage = steward()
  stage.members = [member('a'), member('b', { priority: 80 })]
  stage.matches.set('b', 3000)
  await stage.run(40_000)
  expect(stage.moves).toEqual([])
  stage.matches.set('b', 4500)
  stage.members = [member('a'), { ...member('b', { priority: 80 }), connected: false }]
  await stage.run(1000)
  stage.members = [member('a'), member('b', { priority: 80 })]
  await stage.run(30_000)
  expect(stage.moves).toEqual([])
  await stage.run(1000)
  expect(stage.moves).toEqual(['b'])
  expect(stage.said.get('priority')).toMatchObject({ reason: 'priority' })
})

test('a failed leadership transfer is retried after a minute, not earlier', async () => {
  const stage = steward()
  stage.transferFails = true
  stage.members = [member('a'), member('b', { priority: 80 })]
  stage.matches.set('b', 5000)
  await stage.run(31_000)
  await stage.run(59_000)
  expect(stage.moves).toEqual(['b'])
  await stage.run(2000)
  expect(stage.moves).toEqual(['b', 'b'])
})

test('a manual block of leadership transfers that another controller published also applies to this controller, until it is withdrawn', async () => {
  const stage = steward()
  stage.members = [member('a'), member('b', { priority: 80 })]
  stage.matches.set('b', 5000)
  stage.hear('manual', { reason: 'manual', remainingMs: 120_000 })
  await stage.run(119_000)
  expect(stage.moves).toEqual([])
  stage.hear('manual', undefined)
  await stage.run(2000)
  expect(stage.moves).toEqual(['b'])
})

test('a manual block of leadership transfers is published with its remaining time, and withdrawn when it expires', async () => {
  const stage = steward()
  stage.members = [member('a')]
  stage.subject.pin()
  expect(stage.said.get('manual')).toMatchObject({ reason: 'manual', remainingMs: 600_000 })
  await stage.run(60_000)
  const { remainingMs } = stage.said.get('manual') as { remainingMs: number }
  expect(remainingMs).toBeLessThanOrEqual(545_000)
  await stage.run(600_000)
  expect(stage.said.size).toBe(0)
})

test('a leader whose process stays slow transfers leadership to a voter with a fast disk, and makes no further transfer in the next 290 s', async () => {
  const stage = steward(100)
  stage.members = [member('a', { fsyncP99Ms: 400 }), member('b')]
  stage.matches.set('b', 5000)
  await stage.run(5000)
  stage.members = [member('a'), member('b')]
  await stage.run(1000)
  stage.members = [member('a', { loopDelayP99Ms: 300 }), member('b', { fsyncP99Ms: 140 })]
  await stage.run(20_000)
  expect(stage.moves).toEqual([])
  stage.members = [member('a', { loopDelayP99Ms: 300 }), member('b', { fsyncP99Ms: 20 })]
  await stage.run(1000)
  expect(stage.moves).toEqual(['b'])
  await stage.run(290_000)
  expect(stage.moves).toEqual(['b'])
})
