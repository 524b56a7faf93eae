import { expect, test } from 'vitest'
import { MetricHistory, metricHistoryLimits } from '../../src/api/metrics/metric-history.ts'
import { fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { newIdentity, newService } from './support/network.ts'
import { ManualClock, ManualScheduler } from './support/manual-time.ts'

const { controller, root } = await controllerForFile()

test('role attributes are counted, and can be filtered by prefix and paged', async () => {
  await newIdentity(root, 'a', { roleAttributes: ['sales', 'salt'] })
  await newIdentity(root, 'b', { roleAttributes: ['sales', 'ops'] })
  await newService(root, 'c', { roleAttributes: ['salary'] })
  const rows = async (query: string): Promise<readonly [unknown, number | undefined]> => {
    const reply = await root.get(`${management}/roles/${query}`)
    expect(reply.status, reply.text).toBe(200)
    return [reply.body.data, reply.body.meta?.pagination?.totalCount]
  }
  const sales = { attribute: 'sales', count: 2 }
  const salt = { attribute: 'salt', count: 1 }
  expect(await rows('identities?prefix=sal')).toEqual([[sales, salt], 2])
  expect(await rows(`identities?prefix=${encodeURIComponent('#sal')}&limit=1`)).toEqual([
    [sales],
    2,
  ])
  expect(await rows('identities?prefix=sal&offset=1')).toEqual([[salt], 2])
  expect(await rows('services')).toEqual([[{ attribute: 'salary', count: 1 }], 1])
  expect(await rows('edge-routers')).toEqual([[], 0])
  expect(await rows('posture-checks?limit=-1')).toEqual([[], 0])
})

test('the metrics history shows the changes in each period, and keeps the newest samples up to its maximum', () => {
  const clock = new ManualClock()
  const scheduler = new ManualScheduler()
  const zero = { fsyncs: 0, fsyncP99Ms: 0, leaderChanges: 0, logIns: 0, requests: 0 }
  let totals = { ...zero, commitIndex: 100, appliedIndex: 100 }
  const history = new MetricHistory(() => totals, clock)
  expect(history.view()).toMatchObject({ endedAtMs: null, figures: { logIns: [] } })
  history.start(scheduler)
  const step = (change: Partial<typeof totals>): void => {
    totals = { ...totals, ...change }
    clock.advance(metricHistoryLimits.historyPeriodMs)
    scheduler.run(metricHistoryLimits.historyPeriodMs)
  }
  step({ commitIndex: 150, appliedIndex: 147, fsyncs: 5, fsyncP99Ms: 1.234, logIns: 2 })
  step({ commitIndex: 150, appliedIndex: 150, leaderChanges: 1, requests: 25 })
  expect(history.view().figures).toEqual({
    commitsPerSecond: [5, 0],
    appliedLag: [3, 0],
    fsyncP99Ms: [1.23, null],
    leaderChanges: [0, 1],
    logIns: [2, 0],
    requestsPerSecond: [0, 2.5],
  })
  for (let n = 0; n < metricHistoryLimits.historySamplesMax; n += 1)
    step({ logIns: totals.logIns + n })
  const { logIns } = history.view().figures
  expect(logIns).toHaveLength(metricHistoryLimits.historySamplesMax)
  expect([logIns[0], logIns.at(-1)]).toEqual([0, metricHistoryLimits.historySamplesMax - 1])
  history.stop()
})

test('the metrics history of a controller is available on the fabric API', async () => {
  const reply = await root.get(`${fabric}/cluster/history`)
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body.data).toMatchObject({ selfId: controller.cluster.selfId, periodSeconds: 10 })
})
