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

/** False once a controller has responded that it stores no history, as earlier releases do. */
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
          <FigureLine key={name} title={history.names[name] ?? name} values={figures[name] ?? []} />
        ))}
      </ul>
    </section>
  )
}

/** A line chart, with a description in words. */
function FigureLine({ title, values }: { readonly title: string; readonly values: Figure }) {
  const { last, most } = summarizeValues(values)
  return (
    <li>
      <span class="tiny faint">{title}</span>
      <span class="figure-number">{last === null ? '–' : texts.history.value(last)}</span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <path d={sparklinePath(values, WIDTH, HEIGHT)} />
      </svg>
      <span class="tiny faint">{most === null ? '' : texts.history.most(most)}</span>
    </li>
  )
}
