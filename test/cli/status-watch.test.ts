import { expect, test } from 'vitest'

import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import { CommandFailure, EXIT_FAILED } from '../../src/controller/command-failure.ts'
import { clusterStatusText } from '../../src/cli/cluster/status-screen.ts'
import { type StatusWatchDeps, watchStatus } from '../../src/cli/cluster/status-watch.ts'

const member = {
  id: 'ctrl1',
  address: '127.0.0.1:1480',
  version: 'v0.1.0',
  role: 'leader',
  term: 3,
  commit: 9,
  applied: 8,
  persisted: 7,
  digestIndex: 6,
  digest: '00112233445566778899',
  lastContactMs: 0,
  isFailing: false,
  featureLevel: 1,
}
const status: ClusterStatus = {
  clusterId: 'c-1',
  generation: 1,
  selfId: 'ctrl1',
  leaderId: 'ctrl1',
  featureLevel: 1,
  members: [member, { ...member, id: 'ctrl2', role: 'unknown', lastContactMs: null }],
  failureTolerance: 0,
  nextRisk: 'losing one more voter stops writes',
  alarms: [
    { code: 'NO_QUORUM_SPARE', text: 'ctrl2 is not reached', sinceMs: 1, isCritical: false },
  ],
}

/** A controller that answers, stops, and returns. */
async function watched(form: StatusWatchDeps['form']): Promise<string> {
  const looks: (() => Promise<ClusterStatus>)[] = [
    () => Promise.resolve(status),
    () => Promise.reject(new CommandFailure(EXIT_FAILED, 'ctrl1: no controller is running')),
    () => Promise.resolve({ ...status, leaderId: null }),
  ]
  let text = ''
  let at = -1
  await watchStatus({
    ask: () => {
      at += 1
      return looks[at]?.() ?? Promise.reject(new Error('asked too often'))
    },
    write: (more) => (text += more),
    form,
    now: () => new Date(0),
    wait: () => Promise.resolve(at < looks.length - 1),
  })
  return text
}

test('cluster status --watch redraws a terminal for each poll, and shows if the controller does not respond', async () => {
  const screens = (await watched('screen')).split('\u001b[H')
  expect(screens[0]).toBe('\u001b[2J')
  expect(screens[1]).toContain('losing one more voter stops writes')
  expect(screens[1]).toContain('alarm NO_QUORUM_SPARE: ctrl2 is not reached')
  expect(screens[1]).toMatch(/\u001b\[J$/)
  expect(screens[2]).toContain('no controller is running')
  expect(screens[3]).toContain('no leader')
})

test('cluster status --watch prints one line or one JSON document for each poll if the output is not a terminal', async () => {
  const lines = (await watched('lines')).trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  expect(lines[0]).toBe(
    '1970-01-01T00:00:00.000Z ctrl1: leader ctrl1, term 3, commit 9, applied 8, tolerance 0, unreachable ctrl2, alarms NO_QUORUM_SPARE',
  )
  const documents = (await watched('json')).trimEnd().split('\n')
  const parsed = documents.map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(parsed.map(({ leaderId, error }) => leaderId ?? error ?? null)).toEqual([
    'ctrl1',
    'ctrl1: no controller is running',
    null,
  ])
})

test('cluster status shows a member that reports a failure as not serving', () => {
  const text = clusterStatusText({ ...status, members: [{ ...member, isFailing: true }] })
  expect(text).toMatch(/^ctrl1 +leader, not serving +3 /m)
})
