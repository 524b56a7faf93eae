import { expect, test } from 'vitest'

import { trafficLimits } from '../../src/api/traffic/limits.ts'
import { TrafficCounts } from '../../src/api/traffic/traffic-counts.ts'
import type { Observation } from '../../src/ports/observations.ts'
import type { TrafficTotals } from '../../src/ports/traffic.ts'
import { type CallerOf, fabric, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { newIdentity, newService } from '../api/support/network.ts'

// The attacks: somebody reads which services are used and how much; a router reports byte counts
// that hide the traffic of others or use up the memory of a controller; somebody causes requests
// between controllers while one of them does not respond.

const { controller, root, sessionOf } = await controllerForFile()
const { traffic } = controller

/** A router's report about one circuit, for an interval of length zero. */
function report(routerId: string, serviceId: string, bytes: number): Observation {
  const common = { circuitId: 'c', startS: 0, lengthS: 0 }
  const usages = [{ ...common, kind: 'ingress.rx', bytes, tags: { serviceId } }] as const
  const metrics = { routerId, usages, figures: [], eventId: '', atMs: null, tags: {} }
  return { kind: 'routerMetrics', metrics }
}

/**
 * Traffic counts in a network whose services have the IDs that `isService` accepts, and in which
 * every router exists.
 */
function counting(isService: (id: string) => boolean) {
  const clock = new ManualClock()
  const state = {
    get: (kind: string, id: string) => (kind === 'service' && !isService(id) ? undefined : { id }),
  } as never
  const counts = new TrafficCounts({ state, circuit: () => undefined, clock })
  return { counts, totals: (): TrafficTotals => counts.totals('service', clock.nowMs()) }
}

async function statuses(caller: CallerOf, base: string, paths: readonly string[]) {
  const replies = paths.map(async (path) => (await caller.get(`${base}/traffic/${path}`)).status)
  return await Promise.all(replies)
}

test('the traffic of records is refused to callers who may not read the records', async () => {
  const id = await newService(root, 'secret')
  const callerWith = async (name: string, ...permissions: readonly string[]) =>
    sessionOf(await newIdentity(root, name, { permissions }))
  const nobody = await callerWith('nobody')
  const reader = await callerWith('reader', 'service.read')
  const ops = await callerWith('ops', 'ops', 'router.read')
  const paths = ['services', `services/${id}`, 'routers']
  expect(await statuses(nobody, management, paths)).toEqual([401, 401, 401])
  expect(await statuses(reader, management, paths)).toEqual([200, 200, 401])
  expect(await statuses(ops, management, paths)).toEqual([401, 401, 200])
  // Permissions for records apply only to the management API.
  expect(await statuses(reader, fabric, paths)).toEqual([401, 401, 401])
  expect(await statuses(root, fabric, paths)).toEqual([200, 200, 200])
  expect(await statuses(root, management, ['services/none', 'routers/none'])).toEqual([404, 404])
})

test('a router that reports traffic of services that do not exist does not evict the traffic of existing services', () => {
  const { counts, totals } = counting((id) => id === 'wiki')
  counts.note(report('r', 'wiki', 1))
  for (let n = 0; n < 2 * trafficLimits.trafficServicesMax; n += 1) {
    counts.note(report('r', `invented ${n}`, 1000))
  }
  const { rows, other } = totals()
  expect(rows.map(({ id, figures }) => [id, figures.hour[0]])).toEqual([['wiki', 1]])
  expect(other.hour[0]).toBe(2000 * trafficLimits.trafficServicesMax)
})

test('a router that reports negative, infinite or fractional byte counts does not change any sum', () => {
  const { counts, totals } = counting(() => true)
  counts.note(report('r', 'wiki', 7))
  for (const bytes of [-5, NaN, Infinity, 2 ** 63, 0.5]) counts.note(report('r', 'wiki', bytes))
  expect(totals().rows.map(({ figures }) => figures.hour[0])).toEqual([7])
})

test('traffic counts use limited memory with any number of services and routers, and the sum still contains all traffic', () => {
  const { counts, totals } = counting(() => true)
  const { trafficServicesMax: max, trafficRoutersMax } = trafficLimits
  for (let n = 0; n < 3 * max; n += 1) counts.note(report(`router ${n}`, `service ${n}`, 10))
  const { rows, other } = totals()
  const sum = rows.reduce((bytes, { figures }) => bytes + (figures.hour[0] ?? 0), 0)
  expect([rows.length, other.hour[0], sum]).toEqual([max, 20 * max, 10 * max])
  expect(counts.totals('router', 0).rows).toHaveLength(trafficRoutersMax)
  expect(counts.bytes).toBeLessThan(14 * 1024 * 1024)
})

test('one caller’s traffic requests do not use up the capacity for other callers while a controller does not respond', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  traffic.beforeAnswer = () => promise
  const id = await newService(root, 'awaited')
  const other = sessionOf(await newIdentity(root, 'other', { permissions: ['service.read'] }))
  const path = `services/${id}`
  traffic.calls.length = 0
  let refused = 0
  const flood = Array.from({ length: 40 }, async () => {
    const [status] = await statuses(root, management, [path])
    if (status === 429) refused += 1
    return status
  })
  await expect.poll(() => refused + traffic.calls.length).toBe(40)
  expect(refused).toBe(28)
  const honest = statuses(other, management, [path])
  await expect.poll(() => traffic.calls.length).toBe(13)
  resolve()
  const answered = await Promise.all(flood)
  expect([answered.filter((status) => status === 200).length, await honest]).toEqual([12, [200]])
})
