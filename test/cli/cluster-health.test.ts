import { describe, expect, test } from 'vitest'

import type { ClusterStatus, MemberStatus } from '../../src/api/cluster/cluster-status.ts'
import { evaluateClusterHealth, healthText } from '../../src/cli/cluster/health.ts'
import { clusterStatusText } from '../../src/cli/cluster/status-screen.ts'

// Goal: a monitoring system and an operator read the same state from one line, without
// contradictions.

const member = (id: string, role = 'follower', isFailing = false): MemberStatus => ({
  id,
  address: `${id}:1480`,
  version: 'v1',
  role,
  term: 1,
  commit: 1,
  applied: 1,
  persisted: 1,
  digestIndex: 1,
  digest: '',
  lastContactMs: 0,
  isFailing,
  featureLevel: 1,
})

/** Status of a cluster of three according to ctrl1. */
const status: ClusterStatus = {
  clusterId: 'c',
  generation: 1,
  selfId: 'ctrl1',
  leaderId: 'ctrl1',
  featureLevel: 1,
  members: ['ctrl1', 'ctrl2', 'ctrl3'].map((id) => member(id)),
  failureTolerance: 1,
  failureToleranceMax: 1,
  nextRisk: 'writes survive the failure of one voter',
  alarms: [],
}
const each = ['ctrl1', 'ctrl2', 'ctrl3'].map((selfId) => ({ ...status, selfId }))
const [first = status, second = status] = each
const atRisk = {
  ...status,
  failureTolerance: 0,
  nextRisk: 'losing one more voter stops writes',
}
const withoutMajority = {
  ...status,
  failureTolerance: -1,
  nextRisk: 'no majority of voters is connected',
}
const alarm = (code: string, isCritical: boolean) => ({ code, text: 'why', sinceMs: 1, isCritical })
const silent = ['https://ctrl3:1280: it refused the connection']
const [one, two] = [member('ctrl1'), member('ctrl2')]

describe('the health of a cluster', () => {
  test('names a member that answers but has not received the state', () => {
    const learner = { ...member('ctrl3', 'learner'), applied: 0, address: 'ctrl2:1480' }
    const seen = { ...status, members: [member('ctrl1', 'leader'), member('ctrl2'), learner] }
    const { state, reasons } = evaluateClusterHealth({
      statuses: [seen],
      faults: [],
      isOneView: true,
    })
    expect(state).toBe('WARNING')
    expect(reasons).toEqual([
      'ctrl3 has not received the state; check that the other controllers reach it at ctrl2:1480',
    ])
  })

  test.each([
    [
      'OK: 3 of 3 controllers answer, leader ctrl1, writes survive the failure of one voter | controllers=3 answering=3 tolerance=1 alarms=0',
      { statuses: each, faults: [], isOneView: false },
    ],
    [
      'WARNING: ctrl3 does not answer; https://ctrl3:1280: it refused the connection | controllers=3 answering=2 tolerance=1 alarms=0',
      { statuses: [first, second], faults: silent, isOneView: false },
    ],
    [
      'WARNING: ctrl3 does not answer | controllers=3 answering=2 tolerance=1 alarms=0',
      {
        statuses: [{ ...status, members: [one, two, member('ctrl3', 'unknown')] }],
        faults: [],
        isOneView: true,
      },
    ],
    [
      'WARNING: ctrl2 does not serve; CLOCK_SKEW: why | controllers=2 answering=2 tolerance=1 alarms=1',
      {
        statuses: [
          {
            ...status,
            members: [one, member('ctrl2', 'follower', true)],
            alarms: [alarm('CLOCK_SKEW', false)],
          },
        ],
        faults: [],
        isOneView: true,
      },
    ],
    [
      // All three members count as reachable for a moment after one of them was killed.
      'WARNING: failure tolerance 0 instead of 1: losing one more voter stops writes | controllers=3 answering=3 tolerance=0 alarms=0',
      { statuses: [atRisk], faults: [], isOneView: true },
    ],
    [
      // The leader notices the loss of a voter before the followers do.
      'WARNING: ctrl3 does not answer; failure tolerance 0 instead of 1: losing one more voter stops writes; https://ctrl3:1280: it refused the connection | controllers=3 answering=2 tolerance=0 alarms=0',
      { statuses: [second, atRisk], faults: silent, isOneView: false },
    ],
    [
      // A follower may have lost the connection to a voter that the leader reaches.
      'OK: 3 of 3 controllers answer, leader ctrl1, writes survive the failure of one voter | controllers=3 answering=3 tolerance=1 alarms=0',
      {
        statuses: [first, { ...atRisk, selfId: 'ctrl2' }, { ...first, selfId: 'ctrl3' }],
        faults: [],
        isOneView: false,
      },
    ],
    [
      // The leader notices the loss of its majority before it resigns. The others may elect a leader.
      'WARNING: failure tolerance -1 instead of 1: no majority of voters is connected | controllers=3 answering=3 tolerance=-1 alarms=0',
      { statuses: [withoutMajority, ...each.slice(1)], faults: [], isOneView: false },
    ],
    [
      'CRITICAL: no leader: writes wait | controllers=3 answering=3 tolerance=-1 alarms=0',
      {
        statuses: each.map(({ selfId }) => ({ ...withoutMajority, selfId })),
        faults: [],
        isOneView: false,
      },
    ],
    [
      'OK: 1 of 1 controllers answer, leader ctrl1, only one voter: writes stop while it is down | controllers=1 answering=1 tolerance=0 alarms=0',
      {
        statuses: [
          {
            ...status,
            members: [one],
            failureTolerance: 0,
            failureToleranceMax: 0,
            nextRisk: 'only one voter: writes stop while it is down',
          },
        ],
        faults: [],
        isOneView: true,
      },
    ],
    [
      'CRITICAL: no leader: writes wait | controllers=3 answering=3 tolerance=-1 alarms=0',
      { statuses: each.map((of) => ({ ...of, leaderId: null })), faults: [], isOneView: false },
    ],
    [
      'CRITICAL: LOG_DAMAGED: why; CLOCK_SKEW: why | controllers=3 answering=3 tolerance=1 alarms=2',
      {
        statuses: [
          { ...first, alarms: [alarm('CLOCK_SKEW', false), alarm('LOG_DAMAGED', true)] },
          ...each.slice(1),
        ],
        faults: [],
        isOneView: false,
      },
    ],
    [
      'CRITICAL: no controller answers; https://ctrl3:1280: it refused the connection | controllers=0 answering=0 tolerance=-1 alarms=0',
      { statuses: [], faults: silent, isOneView: false },
    ],
  ])('is printed as %s', (line, observed) => {
    expect(healthText(evaluateClusterHealth(observed))).toBe(line)
  })

  test('is printed on one line, whatever text an alarm contains', () => {
    const text = 'a|b\nc'
    const statuses = [{ ...status, alarms: [{ ...alarm('X', false), text }] }]
    const line = healthText(evaluateClusterHealth({ statuses, faults: [], isOneView: true }))
    expect(line).toMatch(/^WARNING: X: a\/b.c \| controllers=3 answering=3 tolerance=1 alarms=1$/)
  })
})

describe('the status of a cluster', () => {
  test('does not claim that writes survive a failure if there is no leader', () => {
    const text = clusterStatusText({ ...status, leaderId: null })
    expect(text).toContain('no leader: writes wait until one is elected')
    expect(text).not.toContain('survive')
  })

  test('marks an alarm about voters as over if its cause has ended', () => {
    const alarms = [alarm('NO_QUORUM_SPARE', false)]
    expect(clusterStatusText({ ...status, alarms })).toContain(
      'alarm NO_QUORUM_SPARE: why (over: the alarm ends within 30 s)',
    )
    expect(clusterStatusText({ ...status, alarms, failureTolerance: 0 })).toMatch(
      /^alarm NO_QUORUM_SPARE: why$/m,
    )
  })
})
