import { formatByteCount } from '../../client/format-byte-count.ts'
import { usageFailure } from '../../controller/command-failure.ts'
import {
  listShape,
  nullableShape,
  numberShape,
  objectShape,
  textShape,
} from '../client/response-shape.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { findKind } from '../records/kinds.ts'
import { RecordNameResolver } from '../records/names.ts'
import { formatTable, printJson, printLine, printNote } from '../terminal/output.ts'

export interface TrafficOptions extends ContextOptions {
  readonly day?: boolean
  readonly by: string
  readonly limit: number
}

interface Totals {
  readonly rxBytes: number
  readonly txBytes: number
  readonly circuits: number
  readonly dialFailures: number
  readonly latencyMs: number | null
}

interface Span {
  readonly periodSeconds: number
  readonly startedAt: string
  readonly rxBytes: readonly number[]
  readonly txBytes: readonly number[]
  readonly circuits: readonly number[]
  readonly dialFailures: readonly number[]
  readonly latencyMs: readonly (number | null)[]
  readonly totals: Totals
}

interface RecordTraffic {
  readonly id: string
  readonly name: string
  readonly hour: Span
  readonly day: Span
}

/** Controllers whose counts are missing in a response. */
interface Incomplete {
  readonly silentControllers: readonly string[]
}

interface TopTraffic extends Incomplete {
  readonly rows: readonly RecordTraffic[]
  readonly other: { readonly hour: Totals; readonly day: Totals }
}

const totalsShape = objectShape<Totals>({
  rxBytes: numberShape,
  txBytes: numberShape,
  circuits: numberShape,
  dialFailures: numberShape,
  latencyMs: nullableShape(numberShape),
})
const numbers = listShape(numberShape)
const spanShape = objectShape<Span>({
  periodSeconds: numberShape,
  startedAt: textShape,
  rxBytes: numbers,
  txBytes: numbers,
  circuits: numbers,
  dialFailures: numbers,
  latencyMs: listShape(nullableShape(numberShape)),
  totals: totalsShape,
})
const record = { id: textShape, name: textShape, hour: spanShape, day: spanShape }
const silentControllers = listShape(textShape)
const recordShape = objectShape<RecordTraffic & Incomplete>({ ...record, silentControllers })
const topShape = objectShape<TopTraffic>({
  rows: listShape(objectShape<RecordTraffic>(record)),
  other: objectShape({ hour: totalsShape, day: totalsShape }),
  silentControllers,
})

const routers = new Set(['router', 'edgeRouter', 'transitRouter'])

/** Prints the traffic of one service or router, or lists those with the most traffic. */
export async function showTraffic(
  kindWord: string | undefined,
  name: string | undefined,
  options: TrafficOptions,
): Promise<void> {
  const kind = findKind(kindWord ?? 'service')
  if (kind.id !== 'service' && !routers.has(kind.id)) {
    throw usageFailure(`${kind.plural} have no traffic: expected service or router`)
  }
  const client = openContextClient(options)
  const path = `/traffic/${kind.id === 'service' ? 'services' : 'routers'}`
  if (name === undefined) {
    await showTop(client, path, options)
    return
  }
  const { id } = await new RecordNameResolver(client).record(kind, name)
  const request = { method: 'GET', path: `${path}/${encodeURIComponent(id)}` } as const
  const { data } = await client.ask(request, recordShape)
  if (options.json === true) printJson(data)
  else printLine(periodTable(options.day === true ? data.day : data.hour))
  noteSilent(data)
}

async function showTop(client: ApiClient, path: string, options: TrafficOptions): Promise<void> {
  const query = new URLSearchParams({ by: options.by, limit: String(options.limit) })
  const { data } = await client.ask({ method: 'GET', path: `${path}?${query}` }, topShape)
  const span = options.day === true ? 'day' : 'hour'
  const rows = data.rows.map((row) => [row.name, ...cellsOf(row[span].totals)])
  const others = ['(others)', ...cellsOf(data.other[span])]
  if (options.json === true) printJson(data)
  else printLine(formatTable(['name', ...titles], [...rows, others]))
  noteSilent(data)
}

const titles = ['read', 'written', 'circuits', 'failed dials', 'latency']

function cellsOf({ rxBytes, txBytes, circuits, dialFailures, latencyMs }: Totals): string[] {
  return [
    formatByteCount(rxBytes),
    formatByteCount(txBytes),
    String(circuits),
    String(dialFailures),
    latencyMs === null ? '-' : `${latencyMs} ms`,
  ]
}

/** A line for each period with traffic, the oldest first, and the total. */
function periodTable(span: Span): string {
  const startMs = Date.parse(span.startedAt)
  const rows = span.circuits.flatMap((circuits, at) => {
    const totals = {
      circuits,
      rxBytes: span.rxBytes[at] ?? 0,
      txBytes: span.txBytes[at] ?? 0,
      dialFailures: span.dialFailures[at] ?? 0,
      latencyMs: span.latencyMs[at] ?? null,
    }
    const isIdle = Object.values(totals).every((value) => value === 0 || value === null)
    const from = timeText(startMs + at * span.periodSeconds * 1000)
    return isIdle ? [] : [[from, ...cellsOf(totals)]]
  })
  return formatTable(['from', ...titles], [...rows, ['total', ...cellsOf(span.totals)]])
}

/** The time as text; `-` for a number that is not a valid time, which a faulty server may send. */
function timeText(ms: number): string {
  const at = new Date(ms)
  return Number.isNaN(at.getTime()) ? '-' : at.toISOString()
}

function noteSilent({ silentControllers: silent }: Incomplete): void {
  if (silent.length > 0) printNote(`flotilla: incomplete: no answer from ${silent.join(', ')}`)
}
