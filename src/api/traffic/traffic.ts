import { findEntity } from '../../entities/registry.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import type { Clock } from '../../lib/clock.ts'
import { Problem } from '../../lib/problems.ts'
import type { StateView } from '../../ports/state-view.ts'
import {
  type ClusterTraffic,
  type RecordTraffic,
  type TrafficCounterName,
  trafficCounterNames,
  type TrafficKind,
  type TrafficSeries,
} from '../../ports/traffic.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Operation } from '../http/operation.ts'
import { trafficLimits } from './limits.ts'
import { trafficDetailSchema, topTrafficSchema } from './traffic-schema.ts'
import { trafficSpansView, trafficTotalsView } from './traffic-view.ts'

interface TrafficOperationsDeps {
  readonly state: StateView
  readonly traffic: ClusterTraffic
  readonly clock: Clock
}

const TOP = 10
/** The orders by which services and routers are sorted. */
const orders = {
  bytes: ['rxBytes', 'txBytes'],
  circuits: ['circuits'],
  dialFailures: ['dialFailures'],
} as const
type Order = keyof typeof orders

/** Kinds with traffic, and the permission to read their records. */
const kinds = [
  ['service', 'service.read', 'Service'],
  ['router', 'router.read', 'Router'],
] as const

/**
 * Operations that show the traffic of services and routers. Any controller can answer for the whole
 * cluster: it adds up the counts of all controllers that respond in time.
 */
export function trafficOperations(deps: TrafficOperationsDeps): Operation[] {
  // @guard traffic-of-others--flood
  const reads = new FairShare(trafficLimits.trafficReadsMax)
  return kinds.flatMap(([kind, permission, name]) => {
    const { collection } = findEntity(kind)
    // Requires the permission to read the records, because the response contains their names.
    const common = {
      tag: 'traffic',
      apis: ['management', 'fabric'],
      // @guard traffic-of-others--permission
      permission,
      method: 'GET',
      success: 200,
      isCompressible: true,
    } as const
    return [
      {
        ...common,
        operationId: `listTopTraffic${name}s`,
        summary: `List the ${collection} with the most traffic in the last hour and day`,
        path: `/traffic/${collection}`,
        query: [
          { name: 'by', schema: { type: 'string', enum: Object.keys(orders) }, isRequired: false },
          { name: 'limit', schema: { type: 'integer' }, isRequired: false },
        ],
        response: { kind: 'detail', schema: topTrafficSchema },
        handle: (call) => shared(reads, call, () => topTraffic(deps, kind, call)),
      },
      {
        ...common,
        operationId: `detailTraffic${name}`,
        summary: `Show the traffic of a ${kind}: the last hour by minute, the last day by quarter hour`,
        path: `/traffic/${collection}/{id}`,
        response: { kind: 'detail', schema: trafficDetailSchema },
        refusals: [404],
        handle: (call) => shared(reads, call, () => recordTraffic(deps, kind, call)),
      },
    ] satisfies Operation[]
  })
}

/**
 * Limits the requests that wait for other controllers at the same time, because a controller may
 * not respond.
 */
async function shared(
  reads: FairShare,
  { sharer }: RequestContext,
  read: () => Promise<Reply>,
): Promise<Reply> {
  if (!reads.hasRoomFor(sharer)) {
    throw new Problem('SERVER_TOO_MANY_REQUESTS', {
      detail: 'too many requests for traffic at the same time',
    })
  }
  reads.take(sharer)
  try {
    return await read()
  } finally {
    reads.giveBack(sharer)
  }
}

async function recordTraffic(
  { state, traffic, clock }: TrafficOperationsDeps,
  kind: TrafficKind,
  call: RequestContext,
): Promise<Reply> {
  const id = call.param('id')
  const record = state.get(kind, id)
  if (record === undefined) {
    throw new Problem('NOT_FOUND', { detail: `${kind} with id ${id} not found` })
  }
  const nowMs = clock.nowMs()
  const { found, silent } = await traffic.series(kind, [id], nowMs)
  return detailResponse({
    entity: findEntity(kind).collection,
    id,
    name: record.name,
    ...trafficSpansView(found[0]?.figures, nowMs),
    silentControllers: silent,
  })
}

async function topTraffic(
  { state, traffic, clock }: TrafficOperationsDeps,
  kind: TrafficKind,
  call: RequestContext,
): Promise<Reply> {
  const by = orderOf(call)
  const limit = Number(call.first('limit') ?? TOP)
  const nowMs = clock.nowMs()
  const { found: totals, silent } = await traffic.totals(kind, nowMs)
  const known = totals.rows.filter(({ id }) => state.get(kind, id) !== undefined)
  const ranked = ranking(known, by)
  const top = ranked.slice(0, Math.max(1, Math.min(limit, trafficLimits.trafficTopMax)))
  const ids = top.map(({ id }) => id)
  const { found, silent: later } = await traffic.series(kind, ids, nowMs, silent)
  const series = new Map(found.map(({ id, figures }) => [id, figures]))
  const shown = new Set(ids)
  const rest = totals.rows.filter(({ id }) => !shown.has(id)).map(({ figures }) => figures)
  return detailResponse({
    by,
    rows: ids.flatMap((id) => {
      const record = state.get(kind, id)
      if (record === undefined) return []
      const spans = trafficSpansView(series.get(id), nowMs)
      return [{ entity: findEntity(kind).collection, id, name: record.name, ...spans }]
    }),
    other: otherView([totals.other, ...rest]),
    recordCount: known.length,
    silentControllers: [...new Set([...silent, ...later])].sort(),
  })
}

/** The requested order. The pipeline has already refused invalid values. */
function orderOf(call: RequestContext): Order {
  const asked = call.first('by') ?? 'bytes'
  return Object.hasOwn(orders, asked) ? (asked as Order) : 'bytes'
}

/**
 * Sorts records by the sum of the order's figures over the last hour, then over the last day. In
 * the order by bytes, records that have only circuits or failures are last; any other order omits
 * records whose sum over the day is 0.
 */
function ranking(rows: readonly RecordTraffic[], by: Order): readonly RecordTraffic[] {
  const sum = (figures: readonly number[], names: readonly TrafficCounterName[]): number =>
    names.reduce((all, name) => all + (figures[trafficCounterNames.indexOf(name)] ?? 0), 0)
  const listedBy = by === 'bytes' ? Object.values(orders).flat() : orders[by]
  return rows
    .filter(({ figures }) => sum(figures.day, listedBy) > 0)
    .map((row) => ({
      row,
      hour: sum(row.figures.hour, orders[by]),
      day: sum(row.figures.day, orders[by]),
    }))
    .sort((a, b) => b.hour - a.hour || b.day - a.day || (a.row.id < b.row.id ? -1 : 1))
    .map(({ row }) => row)
}

function otherView(all: readonly TrafficSeries[]) {
  const sums = (span: keyof TrafficSeries): readonly number[] =>
    trafficCounterNames.map((_, at) => all.reduce((sum, one) => sum + (one[span][at] ?? 0), 0))
  return { hour: trafficTotalsView(sums('hour')), day: trafficTotalsView(sums('day')) }
}
