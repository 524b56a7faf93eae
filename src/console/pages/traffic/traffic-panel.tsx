import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { EmptyState, Notice, Skeleton } from '../../controls/status.tsx'
import { formatByteCount } from '../../../client/format-byte-count.ts'
import { texts } from '../../texts.ts'
import { TrafficChart } from './traffic-chart.tsx'
import {
  readTraffic,
  TRAFFIC_REFRESH_MS,
  type TrafficSpan,
  unfinishedPeriods,
} from './traffic-data.ts'

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const integerText = (value: number): string => value.toLocaleString('en')

/** Whether anything was read, written or dialed in a time span. */
function hasTraffic({
  totals: { rxBytes, txBytes, circuits, dialFailures },
}: TrafficSpan): boolean {
  return rxBytes + txBytes + circuits + dialFailures > 0
}

/**
 * Traffic of a service or a router: charts, and the same numbers as a table.
 * @param props.children shown if there has been no traffic, such as the reason.
 */
export function TrafficPanel(props: {
  readonly collection: string
  readonly id: string
  readonly children?: ComponentChildren
}) {
  const { collection, id } = props
  const { traffic } = texts
  const loaded = useLoadedData(
    `traffic/${collection}/${id}`,
    (signal) => readTraffic(collection, id, signal),
    TRAFFIC_REFRESH_MS,
  )
  const name = useSignal<'hour' | 'day'>('hour')
  const { value: shown } = loaded.data
  if (shown === null) {
    if (loaded.error.value !== null) {
      return <Failure error={loaded.error.value} retry={loaded.reload} />
    }
    return (
      <div class="panel panel-body" aria-busy="true">
        <Skeleton />
      </div>
    )
  }
  const { silentControllers: silent } = shown
  const span = shown[name.value]
  const isIdle = !hasTraffic(span)
  const isService = collection === 'services'
  return (
    <>
      <FailureNotice error={loaded.error.value} />
      {silent.length === 0 ? null : <Notice tone="warn">{texts.live.silent(silent)}</Notice>}
      <section class="panel" aria-labelledby="traffic">
        <div class="panel-head">
          <h2 id="traffic">{traffic.title}</h2>
          <div class="segments" role="group" aria-label={traffic.spans}>
            {(['hour', 'day'] as const).map((one) => (
              <button
                key={one}
                type="button"
                aria-pressed={one === name.value}
                onClick={() => (name.value = one)}
              >
                {traffic.spanNames[one]}
              </button>
            ))}
          </div>
        </div>
        {isIdle ? (
          <EmptyState icon="service" title={traffic.none[name.value]}>
            {props.children}
            <p class="small">{traffic.forgets}</p>
          </EmptyState>
        ) : (
          <>
            <Charts
              key={name.value}
              span={span}
              unfinished={unfinishedPeriods[name.value]}
              isService={isService}
            />
            <p class="panel-body faint small">
              {isService ? traffic.aboutService : traffic.aboutRouter} {traffic.forgets}
            </p>
            <details class="group-panel">
              <summary>{traffic.asTable}</summary>
              <TrafficTable span={span} />
            </details>
          </>
        )}
      </section>
    </>
  )
}

function periodsOf({ startedAt, periodSeconds, circuits }: TrafficSpan): readonly string[] {
  const startMs = Date.parse(startedAt)
  return circuits.map((_, at) => clock.format(startMs + at * periodSeconds * 1000))
}

function Charts(props: {
  readonly span: TrafficSpan
  readonly unfinished: number
  readonly isService: boolean
}) {
  const { span, unfinished, isService } = props
  const { traffic } = texts
  const chosen = useSignal<number | null>(null)
  const periods = periodsOf(span)
  const { totals } = span
  const about = (text: (at: number) => string) => (at: number) =>
    traffic.at(
      periods[at] ?? '',
      at < periods.length - unfinished ? text(at) : traffic.soFar(text(at)),
    )
  const common = { periods, unfinished, chosen }
  const latency = (value: number | null): string =>
    value === null ? traffic.notMeasured : texts.live.milliseconds(value)
  return (
    <div class="charts">
      <TrafficChart
        {...common}
        title={traffic.bytes}
        total={traffic.readWritten(
          formatByteCount(totals.rxBytes),
          formatByteCount(totals.txBytes),
        )}
        series={[
          { color: 'rx', label: traffic.read, values: span.rxBytes },
          { color: 'tx', label: traffic.written, values: span.txBytes },
        ]}
        numberText={formatByteCount}
        periodText={about((at) =>
          traffic.readWritten(
            formatByteCount(span.rxBytes[at] ?? 0),
            formatByteCount(span.txBytes[at] ?? 0),
          ),
        )}
      />
      <TrafficChart
        {...common}
        title={traffic.circuits}
        total={traffic.newCircuits(totals.circuits)}
        series={[{ color: 'rx', label: traffic.circuits, values: span.circuits }]}
        numberText={integerText}
        periodText={about((at) => traffic.newCircuits(span.circuits[at] ?? 0))}
      />
      <TrafficChart
        {...common}
        title={traffic.dialFailures}
        total={traffic.failures(totals.dialFailures)}
        series={[{ color: 'bad', label: traffic.dialFailures, values: span.dialFailures }]}
        numberText={integerText}
        periodText={about((at) => traffic.failures(span.dialFailures[at] ?? 0))}
      />
      <TrafficChart
        {...common}
        title={isService ? traffic.latencyOfService : traffic.latencyOfRouter}
        total={latency(totals.latencyMs)}
        series={[{ color: 'rx', label: traffic.latency, values: span.latencyMs }]}
        numberText={texts.live.milliseconds}
        periodText={about((at) => latency(span.latencyMs[at] ?? null))}
      />
    </div>
  )
}

/** A table of the periods, the newest first. */
function TrafficTable({ span }: { readonly span: TrafficSpan }) {
  const { columns, notMeasured, title } = texts.traffic
  const rows = periodsOf(span).map((from, at) => [
    from,
    formatByteCount(span.rxBytes[at] ?? 0),
    formatByteCount(span.txBytes[at] ?? 0),
    integerText(span.circuits[at] ?? 0),
    integerText(span.dialFailures[at] ?? 0),
    typeof span.latencyMs[at] === 'number'
      ? texts.live.milliseconds(span.latencyMs[at])
      : notMeasured,
  ])
  return (
    <div class="table-wrap" tabIndex={0} role="group" aria-label={title}>
      <table class="table even">
        <thead>
          <tr>
            {columns.map((column) => (
              <th scope="col" key={column}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.reverse().map(([from = '', ...cells], at) => (
            <tr key={at}>
              <th scope="row">{from}</th>
              {cells.map((cell, n) => (
                <td key={columns[n + 1]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
