import { afterEach, describe, expect, test } from 'vitest'

import { RowRingBuffer } from '../../src/api/metrics/row-ring-buffer.ts'
import { trafficLimits } from '../../src/api/traffic/limits.ts'
import { TrafficCounts } from '../../src/api/traffic/traffic-counts.ts'
import type { CircuitUsage, Observation, UsageKind } from '../../src/ports/observations.ts'
import { type TrafficKind, trafficCounterNames } from '../../src/ports/traffic.ts'
import { fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { ManualClock } from './support/manual-time.ts'
import { type Detail, made, newService, shown } from './support/network.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

const usage = (
  kind: UsageKind,
  bytes: number,
  serviceId: string | null,
  lengthS = 60,
): CircuitUsage => ({
  kind,
  bytes,
  lengthS,
  circuitId: 'c',
  startS: 0,
  tags: serviceId === null ? {} : { serviceId },
})

function report(
  routerId: string,
  usages: readonly CircuitUsage[],
  latenciesNs: readonly number[] = [],
): Observation {
  const figures = latenciesNs.map((mean, at) => ({
    name: `link.l${at}.latency`,
    type: 'histogram' as const,
    values: { mean },
  }))
  const metrics = { routerId, usages, figures, eventId: '', atMs: null, tags: {} }
  return { kind: 'routerMetrics', metrics }
}

function created(serviceId: string, routerIds: readonly string[], layMs: number): Observation {
  const circuit = {
    id: 'c',
    clientId: '',
    sessionId: '',
    serviceId,
    terminatorId: 't',
    createdAt: 0,
    routerIds,
    linkIds: [],
  }
  return { kind: 'circuit', type: 'created', circuit, cost: 1, hostId: '', instanceId: '', layMs }
}

function dial(result: 'success' | 'fail' | 'terminatorRefused', terminatorId = 't'): Observation {
  return { kind: 'dial', serviceId: 's', terminatorId, result }
}

/** Traffic counts for records that all exist; the terminator `t` is at the router `r2`. */
function counting() {
  const clock = new ManualClock()
  const state = {
    get: (kind: string, id: string) =>
      kind === 'terminator' && id === 't'
        ? { routerId: 'r2' }
        : kind === 'terminator'
          ? undefined
          : { id },
  } as never
  const circuit = (id: string) => (id === 'c' ? { serviceId: 'of circuit' } : undefined)
  return { clock, counts: new TrafficCounts({ state, circuit, clock }) }
}

/** Values of the last hour that are not zero, by the age of their minute. */
function minutesOf(counts: TrafficCounts, kind: TrafficKind, id: string, nowMs: number) {
  const [found] = counts.series(kind, [id], nowMs)
  const { hour = [] } = found?.figures ?? {}
  const width = trafficCounterNames.length
  const rows = Array.from({ length: 60 }, (_, n) => hour.slice(n * width, (n + 1) * width))
  return Object.fromEntries(
    rows.flatMap((row, n) => (row.some((value) => value !== 0) ? [[n - 59, row]] : [])),
  )
}

describe('A ring buffer of traffic counts', () => {
  test('keeps the newest rows, ignores reports about older ones, and starts each row with zeros', () => {
    const ring = new RowRingBuffer(3, 2)
    ring.add(10, 0, 1)
    ring.add(11, 1, 2)
    ring.add(12, 0, 3)
    ring.add(12, 0, 4)
    expect(ring.rows(9, 12)).toEqual([0, 0, 1, 0, 0, 2, 7, 0])
    ring.add(13, 1, 5)
    ring.add(10, 0, 100)
    expect(ring.rows(10, 13)).toEqual([0, 0, 0, 2, 7, 0, 0, 5])
    expect([ring.at(13, 0), ring.at(13, 1), ring.at(10, 0)]).toEqual([0, 5, undefined])
    expect(ring.sums(11, 13)).toEqual([7, 7])
    expect(ring.sums(12, 12)).toEqual([7, 0])
  })

  test('adds the rows of another ring buffer', () => {
    const [one, other] = [new RowRingBuffer(3, 1), new RowRingBuffer(3, 1)]
    one.add(5, 0, 1)
    one.add(7, 0, 2)
    other.add(7, 0, 10)
    other.add(8, 0, 20)
    one.addAll(other)
    expect(one.rows(5, 8)).toEqual([0, 0, 12, 20])
  })
})

describe('The traffic', () => {
  test('of a service contains the bytes of its clients, its circuits and its failed dials', () => {
    const { clock, counts } = counting()
    clock.advance(MINUTE_MS - (clock.nowMs() % MINUTE_MS) + 30_000)
    counts.note(created('s', ['r1', 'r2'], 30))
    counts.note(created('s', ['r1'], 10))
    counts.note(dial('success'))
    counts.note(dial('terminatorRefused'))
    counts.note(dial('fail'))
    const usages = [
      usage('ingress.rx', 600, 's'),
      usage('ingress.tx', 6000, 's'),
      usage('egress.rx', 7, 's'),
      usage('fabric.tx', 9, 's'),
    ]
    counts.note(report('r1', usages))
    // Half of the interval that the report covers is in the previous minute.
    expect(minutesOf(counts, 'service', 's', clock.nowMs())).toEqual({
      [-1]: [300, 3000, 0, 0, 0, 0],
      0: [300, 3000, 2, 1, 40, 2],
    })
    clock.advance(10 * MINUTE_MS)
    expect(minutesOf(counts, 'service', 's', clock.nowMs())).toEqual({
      [-11]: [300, 3000, 0, 0, 0, 0],
      [-10]: [300, 3000, 2, 1, 40, 2],
    })
    clock.advance(50 * MINUTE_MS)
    expect(minutesOf(counts, 'service', 's', clock.nowMs())).toEqual({})
    const sums = [600, 6000, 2, 1, 40, 2]
    const day = (): unknown => counts.totals('service', clock.nowMs()).rows
    expect(day()).toEqual([{ id: 's', figures: { hour: [0, 0, 0, 0, 0, 0], day: sums } }])
    clock.advance(DAY_MS)
    const none = [0, 0, 0, 0, 0, 0]
    expect(day()).toEqual([{ id: 's', figures: { hour: none, day: none } }])
  })

  test('of a router contains all bytes that the router read and wrote, its circuits, its links, and failed dials to its terminators', () => {
    const { clock, counts } = counting()
    counts.note(created('s', ['r1', 'r2'], 30))
    counts.note(dial('terminatorRefused'))
    counts.note(dial('terminatorRefused', 'deleted since'))
    counts.note(dial('fail'))
    const usages = [
      usage('ingress.rx', 1, 's'),
      usage('egress.rx', 2, 's'),
      usage('fabric.rx', 4, 's'),
      usage('egress.tx', 8, 's'),
      usage('fabric.tx', 16, 's'),
    ]
    counts.note(report('r2', usages, [2_000_000, 4_000_000]))
    const { rows } = counts.totals('router', clock.nowMs())
    expect(rows.map(({ id, figures: { day } }) => [id, day])).toEqual([
      ['r1', [0, 0, 1, 0, 0, 0]],
      ['r2', [7, 24, 1, 1, 6, 2]],
    ])
  })

  test('of a circuit counts for the circuit’s service even if a report does not name the service', () => {
    const { clock, counts } = counting()
    counts.note(report('r1', [usage('ingress.rx', 5, null)]))
    const { rows } = counts.totals('service', clock.nowMs())
    expect(rows.map(({ id, figures: { day } }) => [id, day[0]])).toEqual([['of circuit', 5]])
  })

  test('in a report about a long interval is distributed over the last 15 minutes of the interval', () => {
    const { clock, counts } = counting()
    clock.advance(MINUTE_MS - (clock.nowMs() % MINUTE_MS))
    counts.note(report('r1', [usage('ingress.rx', 1500, 's', 7 * 24 * 3600)]))
    const minutes = Array.from({ length: 15 }, (_, n) => [`${n - 15}`, [100, 0, 0, 0, 0, 0]])
    expect(minutesOf(counts, 'service', 's', clock.nowMs())).toEqual(Object.fromEntries(minutes))
  })

  test('of the largest service remains when many small services appear and are evicted', () => {
    const { clock: now, counts } = counting()
    counts.note(report('r', [usage('ingress.rx', 1_000_000, 'large', 0)]))
    for (let n = 0; n < 2 * trafficLimits.trafficServicesMax; n += 1) {
      counts.note(report('r', [usage('ingress.rx', 10, `service ${n}`, 0)]))
    }
    const [large] = counts.series('service', ['large'], now.nowMs())
    expect(large?.figures.hour.at(-trafficCounterNames.length)).toBe(1_000_000)
  })
})

const { controller, root } = await controllerForFile()
const { traffic, clock } = controller
afterEach(() => {
  traffic.silent.clear()
  traffic.beforeAnswer = () => Promise.resolve()
})

function totalsOf(row: Detail | undefined): unknown {
  const { hour, day } = row as { hour: { totals: unknown }; day: { totals: unknown } }
  return [hour.totals, day.totals]
}

describe('The traffic API', () => {
  const none = { rxBytes: 0, txBytes: 0, circuits: 0, dialFailures: 0, latencyMs: null }

  test('adds up the counts of all controllers, and names the controllers that do not respond', async () => {
    const id = await newService(root, 'wiki')
    clock.advance(MINUTE_MS - (clock.nowMs() % MINUTE_MS) + 59_000)
    const path = `${management}/traffic/services/${id}`
    expect(totalsOf(await shown(root, path))).toEqual([none, none])
    traffic.own.note(created(id, ['r'], 10))
    traffic.countsOf('ctrl2').note(created(id, ['r'], 20.5))
    traffic.countsOf('ctrl2').note(report('r', [usage('ingress.tx', 1000, id, 10)]))
    traffic.calls.length = 0
    const found = await shown(root, path)
    expect(traffic.calls).toEqual(['traffic.series ctrl2 (1000)'])
    const sum = { rxBytes: 0, txBytes: 1000, circuits: 2, dialFailures: 0, latencyMs: 15.25 }
    const ago = (ms: number): string => new Date(clock.nowMs() - 59_000 - ms).toISOString()
    const quarterMs = (clock.nowMs() - 59_000) % (15 * MINUTE_MS)
    const last = <T>(length: number, fill: T, value: T): T[] => [
      ...new Array<T>(length - 1).fill(fill),
      value,
    ]
    const span = (length: number) => ({
      rxBytes: last(length, 0, 0),
      txBytes: last(length, 0, 1000),
      circuits: last(length, 0, 2),
      dialFailures: last(length, 0, 0),
      latencyMs: last<number | null>(length, null, 15.25),
      totals: sum,
    })
    expect(found).toEqual({
      entity: 'services',
      id,
      name: 'wiki',
      hour: { periodSeconds: 60, startedAt: ago(59 * MINUTE_MS), ...span(60) },
      day: { periodSeconds: 900, startedAt: ago(quarterMs + 95 * 15 * MINUTE_MS), ...span(96) },
      silentControllers: [],
    })
    traffic.silent.add('ctrl2')
    const partial = await shown(root, path)
    expect([partial['silentControllers'], totalsOf(partial)]).toEqual([
      ['ctrl2'],
      [
        { ...none, circuits: 1, latencyMs: 10 },
        { ...none, circuits: 1, latencyMs: 10 },
      ],
    ])
  })

  test('lists the services with the most traffic, and the sum of all other services', async () => {
    const ids: string[] = []
    for (const name of ['small', 'large', 'failing']) ids.push(await newService(root, name))
    const [small = '', large = '', failing = ''] = ids
    const bytes = (id: string, amount: number) => report('r', [usage('ingress.rx', amount, id, 0)])
    traffic.own.note(bytes(small, 3_000_000))
    traffic.own.note(bytes(large, 2_000_000))
    traffic.countsOf('ctrl2').note(bytes(large, 7_000_000))
    traffic.countsOf('ctrl2').note(bytes('of no service', 40))
    for (let n = 0; n < 3; n += 1) {
      traffic.own.note({ kind: 'dial', serviceId: failing, terminatorId: '', result: 'fail' })
    }
    const top = async (query: string) => {
      const { rows, ...rest } = await shown(root, `${management}/traffic/services?${query}`)
      const named = (rows as readonly Detail[]).map(({ name, hour }) => {
        const { totals } = hour as { totals: { rxBytes: number; dialFailures: number } }
        return [name, totals.rxBytes, totals.dialFailures]
      })
      return { ...rest, rows: named }
    }
    const few = await top('limit=2')
    expect(few.rows).toEqual([
      ['large', 9_000_000, 0],
      ['small', 3_000_000, 0],
    ])
    const { other } = few as unknown as { other: { hour: { rxBytes: number } } }
    expect(other.hour.rxBytes).toBe(40)
    expect((await top('')).rows.slice(2)).toContainEqual(['failing', 0, 3])
    const byFailures = await top('by=dialFailures')
    expect(byFailures.rows).toEqual([['failing', 0, 3]])
    const wrong = await root.get(`${management}/traffic/services?by=size`)
    expect(wrong.status).toBe(400)
    expect((await top('limit=-1')).rows).toHaveLength(1)
  })

  test('returns the traffic of a router from both the management API and the fabric API', async () => {
    const id = await made(root, `${management}/edge-routers`, { name: 'gate' })
    traffic.own.note(report(id, [usage('fabric.rx', 77, null, 0)], [3_000_000]))
    const sum = { ...none, rxBytes: 77, latencyMs: 3 }
    for (const base of [management, fabric]) {
      const found = await shown(root, `${base}/traffic/routers/${id}`)
      expect([found['name'], totalsOf(found)]).toEqual(['gate', [sum, sum]])
      const { rows } = await shown(root, `${base}/traffic/routers`)
      expect((rows as readonly Detail[]).map(({ name }) => name)).toEqual(['gate'])
    }
  })
})
