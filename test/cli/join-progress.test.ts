import { afterEach, expect, test, vi } from 'vitest'

import type {
  ClusterStatus,
  OpenZitiMember,
  MemberStatus,
} from '../../src/api/cluster/cluster-status.ts'
import { JoinProgress } from '../../src/cli/bootstrap/run-joined-controller.ts'
import {
  removalActionAfterAdmission,
  removalActionAfterRefusal,
} from '../../src/controller/start/removal-action.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

function at(id: string, commit: number, applied: number): MemberStatus {
  return {
    id,
    address: '',
    version: '',
    role: 'follower',
    term: 1,
    commit,
    applied,
    persisted: applied,
    digestIndex: 0,
    digest: '',
    lastContactMs: 0,
    isFailing: false,
    featureLevel: 1,
  }
}

function seen(members: readonly MemberStatus[], leaderId: string | null): ClusterStatus {
  const risk = { failureTolerance: 1, nextRisk: '', alarms: [], featureLevel: 1 }
  return { clusterId: 'c-1', generation: 1, selfId: 'ctrl2', leaderId, members, ...risk }
}

function listed(id: string, voter: boolean): OpenZitiMember {
  return { id, address: '', voter, leader: id === 'ctrl1', connected: true, version: '' }
}

function linesOf(steps: (progress: JoinProgress) => void, isVoter = true): string[] {
  const lines: string[] = []
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    lines.push(String(text).trimEnd())
    return true
  })
  steps(new JoinProgress('ctrl2', { isVoter, isJson: false }))
  vi.restoreAllMocks()
  return lines
}

test('a join reports each step once, from the first contact to the right to vote, and then that the controller has joined', () => {
  const self = listed('ctrl2', false)
  const lines = linesOf((progress) => {
    expect(progress.report(seen([], null), [])).toBe(false)
    expect(progress.report(seen([], null), [])).toBe(false)
    for (const applied of [0, 100, 90_000, 99_500, 99_500]) {
      const members = [at('ctrl1', 100_000, 100_000), at('ctrl2', applied, applied)]
      expect(progress.report(seen(members, 'ctrl1'), [listed('ctrl1', true), self])).toBe(false)
    }
    const members = [at('ctrl1', 100_001, 100_001), at('ctrl2', 100_001, 100_000)]
    const whole = [listed('ctrl1', true), listed('ctrl2', true)]
    expect(progress.report(seen(members, 'ctrl1'), whole)).toBe(true)
    expect(progress.report(seen(members, 'ctrl1'), whole)).toBe(true)
  })
  expect(lines).toEqual([
    'ctrl2 requests admission',
    'ctrl2 is a member of cluster c-1',
    'connected to ctrl1',
    'ctrl2 is 100000 entries behind',
    'ctrl2 is 10000 entries behind',
    'ctrl2 has caught up',
    'joined: ctrl2 is a voter',
  ])
})

test('a new learner counts as joined once it has caught up, and no controller counts as joined without a leader', () => {
  const members = [at('ctrl1', 5, 5), at('ctrl2', 5, 5)]
  const lines = linesOf((progress) => {
    const list = [listed('ctrl1', true), listed('ctrl2', false)]
    expect(progress.report(seen(members, null), list)).toBe(false)
    expect(progress.report(seen(members, 'ctrl1'), list)).toBe(true)
  }, false)
  expect(lines.at(-1)).toBe('joined: ctrl2 is a learner')
})

test('a member’s refusal stops the refused controller only if this controller was removed, fenced or not admitted, and discards its disk only if the disk is old or replaced', () => {
  const from = { by: 'ctrl1', index: 9, generation: 2 }
  expect(removalActionAfterRefusal('ctrl2', { ...from, reason: 'removed' })?.type).toBe('removed')
  expect(removalActionAfterRefusal('ctrl2', { ...from, reason: 'rolled-back' })?.type).toBe(
    'rebuild',
  )
  expect(removalActionAfterRefusal('ctrl2', { ...from, reason: 'other-store' })?.type).toBe(
    'rebuild',
  )
  expect(removalActionAfterRefusal('ctrl2', { ...from, reason: 'not-yet-a-member' })).toBeNull()
  const fenced = removalActionAfterRefusal('ctrl2', { ...from, reason: 'fenced' })
  expect(fenced).toMatchObject({ type: 'fenced', fence: { generation: 2, by: 'ctrl1' } })
  expect(fenced?.sentence).toContain('recovered without ctrl2 (generation 2, reported by ctrl1)')
  const refused = { outcome: 'refused', detail: 'so it is', configurationIndex: 9 } as const
  for (const reason of ['removed', 'not-admitted'] as const) {
    expect(removalActionAfterAdmission({ ...refused, reason })).toEqual({
      type: 'removed',
      sentence: 'so it is',
    })
  }
  for (const reason of ['other-key', 'other-cluster', 'store-in-use', 'full'] as const) {
    expect(removalActionAfterAdmission({ ...refused, reason }), reason).toBeNull()
  }
})
