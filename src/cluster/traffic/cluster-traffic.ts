import type { TrafficRow } from '../../../proto/gen/peer_pb.ts'
import { Problem } from '../../lib/problems.ts'
import { toSafeInteger } from '../../lib/text/safe-integer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import {
  type ClusterTraffic,
  type ClusterWideResult,
  type LocalTraffic,
  type RecordTraffic,
  trafficCounterNames,
  type TrafficKind,
  trafficKinds,
  type TrafficSeries,
  type TrafficTotals,
  trafficSpans,
} from '../../ports/traffic.ts'
import { callPeer, decodePeerMessage, encodePeerMessage } from '../peer/peer-message.ts'
import { peerMethods } from '../peer/peer-methods.ts'
import type { PeerChannel } from '../peer-channel.ts'
import { clusterTrafficLimits } from './limits.ts'

interface TrafficExchangeDeps {
  readonly cluster: Pick<ClusterView, 'selfId' | 'members'>
  readonly peers: PeerChannel
  readonly local: LocalTraffic
}

type WireRow = Pick<TrafficRow, 'id' | 'hour' | 'day'>

const { trafficAnswerMsMax, trafficIdsMax, trafficTotalsBytesMax } = clusterTrafficLimits
/** Maximum encoded bytes of a row of sums, without its id. */
const TOTALS_ROW_BYTES = 16 * trafficCounterNames.length + 32

/**
 * Adds up the traffic that the controllers have counted, and sends the counts of this controller to
 * the others on request. The result names each controller from which no valid response arrives in
 * time, for example because its release does not count traffic.
 */
export class TrafficExchange implements ClusterTraffic {
  readonly #deps: TrafficExchangeDeps

  constructor(deps: TrafficExchangeDeps) {
    this.#deps = deps
    const { peers, local } = deps
    const { trafficTotals, trafficSeries } = peerMethods
    peers.serve(trafficTotals.name, 'members', (_caller, payload) => {
      const { kind, nowMs } = decodePeerMessage(trafficTotals.request, payload)
      const totals = boundedTotals(local.totals(kindOf(kind), toSafeInteger(nowMs)))
      return Promise.resolve(encodePeerMessage(trafficTotals.answer, totals))
    })
    peers.serve(trafficSeries.name, 'members', (_caller, payload) => {
      const { kind, nowMs, ids } = decodePeerMessage(trafficSeries.request, payload)
      const few = ids.slice(0, trafficIdsMax)
      const rows = local.series(kindOf(kind), few, toSafeInteger(nowMs)).map(rowMessage)
      return Promise.resolve(encodePeerMessage(trafficSeries.answer, { rows }))
    })
  }

  async totals(kind: TrafficKind, nowMs: number): Promise<ClusterWideResult<TrafficTotals>> {
    const own = this.#deps.local.totals(kind, nowMs)
    const { found, silent } = await this.#fromOthers(async (id) => {
      const request = { kind, nowMs: BigInt(nowMs) }
      const { peers } = this.#deps
      const { trafficTotals } = peerMethods
      const said = await callPeer(peers, id, trafficTotals, request, trafficAnswerMsMax)
      const { figures: other } = trafficOf(said.other ?? noRow, sumLength)
      return { other, rows: said.rows.map((row) => trafficOf(row, sumLength)) }
    })
    const all = [own, ...found]
    const rows = addRows(all.flatMap((one) => one.rows))
    return { found: { rows, other: addSeries(all.map((one) => one.other)) }, silent }
  }

  async series(
    kind: TrafficKind,
    ids: readonly string[],
    nowMs: number,
    silent: readonly string[] = [],
  ): Promise<ClusterWideResult<readonly RecordTraffic[]>> {
    const own = this.#deps.local.series(kind, ids, nowMs)
    const answered = await this.#fromOthers(async (id) => {
      const request = { kind, nowMs: BigInt(nowMs), ids: [...ids] }
      const { peers } = this.#deps
      const { trafficSeries } = peerMethods
      const { rows } = await callPeer(peers, id, trafficSeries, request, trafficAnswerMsMax)
      return rows.map((row) => trafficOf(row, seriesLength))
    }, silent)
    return { found: addRows([...own, ...answered.found.flat()]), silent: answered.silent }
  }

  /**
   * Requests the traffic of the other controllers.
   * @param skipped ids of controllers that count as silent without a request.
   */
  async #fromOthers<T>(
    read: (id: string) => Promise<T>,
    skipped: readonly string[] = [],
  ): Promise<ClusterWideResult<readonly T[]>> {
    const { cluster } = this.#deps
    const others = cluster
      .members()
      .map(({ id }) => id)
      .filter((id) => id !== cluster.selfId)
      .sort()
    const asked = others.filter((id) => !skipped.includes(id))
    const answers = await Promise.allSettled(asked.map(read))
    const failed = asked.filter((_, at) => answers[at]?.status !== 'fulfilled')
    const found = answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    return { found, silent: others.filter((id) => skipped.includes(id) || failed.includes(id)) }
  }
}

/**
 * Decodes the kind of a record.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
function kindOf(word: string): TrafficKind {
  const kind = trafficKinds.find((one) => one === word)
  if (kind === undefined) throw new Problem('COULD_NOT_VALIDATE', { detail: 'unknown kind' })
  return kind
}

const noRow = { id: '', hour: [], day: [] }
const sumLength: Readonly<Record<keyof TrafficSeries, number>> = {
  hour: trafficCounterNames.length,
  day: trafficCounterNames.length,
}
const seriesLength = {
  hour: trafficCounterNames.length * trafficSpans.hour.periods,
  day: trafficCounterNames.length * trafficSpans.day.periods,
}

/**
 * Decodes the traffic of a record.
 * @throws {Problem} COULD_NOT_VALIDATE if a row has another length, as another release may send.
 */
function trafficOf(
  { id, hour, day }: WireRow,
  length: Readonly<Record<keyof TrafficSeries, number>>,
): RecordTraffic {
  if (hour.length !== length.hour || day.length !== length.day) {
    throw new Problem('COULD_NOT_VALIDATE', { detail: 'the row has another length' })
  }
  return { id, figures: { hour, day } }
}

function rowMessage({ id, figures: { hour, day } }: RecordTraffic) {
  return { id, hour: [...hour], day: [...day] } satisfies WireRow
}

/** Limits the rows to one message, and adds up the rows that do not fit. */
function boundedTotals({ rows, other }: TrafficTotals) {
  let bytes = TOTALS_ROW_BYTES
  const fits: RecordTraffic[] = []
  const rest = [other]
  for (const row of rows) {
    bytes += TOTALS_ROW_BYTES + 3 * row.id.length
    if (bytes <= trafficTotalsBytesMax) fits.push(row)
    else rest.push(row.figures)
  }
  const added = { id: '', figures: addSeries(rest) }
  return { rows: fits.map(rowMessage), other: rowMessage(added) }
}

function addRows(rows: readonly RecordTraffic[]): readonly RecordTraffic[] {
  const byId = Map.groupBy(rows, ({ id }) => id)
  return Array.from(byId, ([id, same]) => ({
    id,
    figures: addSeries(same.map(({ figures }) => figures)),
  }))
}

/**
 * Adds up series, period by period.
 * @param all at least one series; all have the same length.
 */
function addSeries(all: readonly TrafficSeries[]): TrafficSeries {
  const [first = { hour: [], day: [] }, ...others] = all
  const of = (span: keyof TrafficSeries): readonly number[] =>
    others.length === 0
      ? first[span]
      : first[span].map((value, at) =>
          others.reduce((sum, one) => sum + (one[span][at] ?? 0), value),
        )
  return { hour: of('hour'), day: of('day') }
}
