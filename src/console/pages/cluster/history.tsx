import { useLoadedData } from '../../app/loaded.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import type { ClusterHistory } from '../../client/served-types.ts'
import { ApiRefusalError } from '../../../client/client-errors.ts'
import { texts } from '../../texts.ts'
import { sparklinePath, summarizeValues } from './sparkline.ts'

type Figure = readonly (number | null)[]

const REFRESH_MS = 10_000
const WIDTH = 160
const HEIGHT = 32

/** False once a controller of an earlier release, which stores no history, has responded. */
let isKept = true

async function load(signal: AbortSignal): Promise<ClusterHistory | null> {
  if (!isKept) return null
  try {
    return (await consoleApiClient.served('GET /fabric/v1/cluster/history', { signal })).data
  } catch (error) {
    if (!(error instanceof ApiRefusalError) || error.status !== 404) throw error
    isKept = false
    return null
  }
}

/** Charts of the current controller's last hour; empty if the controller stores no history. */
export function ClusterHistoryPanel() {
  const { history } = texts
  const loaded = useLoadedData('history', load, REFRESH_MS)
  const { value: shown } = loaded.data
  if (shown === null) return null
  const figures: Readonly<Record<string, Figure | undefined>> = shown.figures
  const names = Object.keys(history.names).filter((name) => figures[name] !== undefined)
  return (
    <section class="panel" aria-labelledby="history">
      <div class="panel-head">
        <h2 id="history">{history.title(shown.selfId)}</h2>
      </div>
      <ul class="figures">
        {names.map((name) => (
          <FigureLine key={name} name={name} values={figures[name] ?? []} />
        ))}
      </ul>
    </section>
  )
}

/** Figures that count events of each minute; their sum is the figure of the hour. */
const counters: ReadonlySet<string> = new Set(['logIns', 'leaderChanges'])

/** A line chart, with a description in words. */
function FigureLine({ name, values }: { readonly name: string; readonly values: Figure }) {
  const { history } = texts
  const isCounter = counters.has(name)
  const { last, most, sum } = summarizeValues(values)
  const value = isCounter && most !== null ? sum : last
  return (
    <li>
      <span class="tiny faint">{history.names[name] ?? name}</span>
      <span class="figure-number">{value === null ? '–' : history.value(value)}</span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <path d={sparklinePath(values, WIDTH, HEIGHT)} />
      </svg>
      <span class="tiny faint">{most === null ? '' : history.most(most, isCounter)}</span>
    </li>
  )
}
