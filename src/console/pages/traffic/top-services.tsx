import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { Notice } from '../../controls/status.tsx'
import { formatByteCount } from '../../../client/format-byte-count.ts'
import { texts } from '../../texts.ts'
import { sparklinePath } from '../cluster/sparkline.ts'
import { readTopServices, TRAFFIC_REFRESH_MS, unfinishedPeriods } from './traffic-data.ts'

const ROWS = 5
const WIDTH = 120
const HEIGHT = 24

/**
 * The services with the most traffic in the last hour, each linked to its traffic. Nothing unless
 * the controller has answered: those of earlier releases do not count traffic.
 */
export function TopServices() {
  const { topServices: words, notMeasured } = texts.traffic
  const loaded = useLoadedData(
    'top-services',
    (signal) => readTopServices(ROWS, signal),
    TRAFFIC_REFRESH_MS,
  )
  const { value: shown } = loaded.data
  if (shown === null) return null
  const { silentControllers: silent } = shown
  return (
    <section class="panel" aria-labelledby="top-services">
      <div class="panel-head">
        <h2 id="top-services">{words.title}</h2>
        <span class="faint small">{texts.traffic.spanNames.hour}</span>
      </div>
      {silent.length === 0 ? null : (
        <div class="panel-body">
          <Notice tone="warn">{texts.live.silent(silent)}</Notice>
        </div>
      )}
      {shown.rows.length === 0 ? (
        <p class="panel-body soft">{words.none}</p>
      ) : (
        <div class="table-wrap" tabIndex={0} role="group" aria-label={words.title}>
          <table class="table even">
            <thead>
              <tr>
                {words.columns.map((column, at) => (
                  <th scope="col" key={column} class={at > 1 ? 'minor' : ''}>
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.rows.map(({ id, name, hour: { rxBytes, txBytes, totals } }) => (
                <tr key={id}>
                  <td>
                    <a href={`${consolePath('services', id)}?tab=traffic`}>{visibleText(name)}</a>
                  </td>
                  <td>
                    <span class="top-bytes">
                      {formatByteCount(totals.rxBytes + totals.txBytes)}
                      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
                        <Curve values={rxBytes.map((bytes, at) => bytes + (txBytes[at] ?? 0))} />
                      </svg>
                    </span>
                  </td>
                  <td class="minor">{totals.circuits.toLocaleString('en')}</td>
                  <td class="minor">{totals.dialFailures.toLocaleString('en')}</td>
                  <td class="minor">
                    {totals.latencyMs === null
                      ? notMeasured
                      : texts.live.milliseconds(totals.latencyMs)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

/** Draws the minutes that are complete over a pale curve that has the last minutes too. */
function Curve({ values }: { readonly values: readonly number[] }) {
  const complete = values.length - unfinishedPeriods.hour
  return (
    <>
      <path class="unfinished" d={sparklinePath(values, WIDTH, HEIGHT)} />
      <path d={sparklinePath(values, WIDTH, HEIGHT, complete)} />
    </>
  )
}
