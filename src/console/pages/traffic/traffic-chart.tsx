import type { Signal } from '@preact/signals'

import { axisMaximum } from './axis.ts'

interface Series {
  /** Color of the series. */
  readonly color: 'rx' | 'tx' | 'bad'
  /** Label of the series; shown only if the chart has several series. */
  readonly label: string
  /** One value for each period; null: not measured. */
  readonly values: readonly (number | null)[]
}

const BAR = 10
const GAP = 2
const HEIGHT = 100

/**
 * Bars with axes, one for each period. The pointer, and the arrow keys on the focused chart, choose
 * a period in all charts that share the signal; the chart then shows the values of this period as
 * text.
 */
export function TrafficChart(props: {
  readonly title: string
  /** Text that is shown while no period is chosen. */
  readonly total: string
  /** Series whose bars are stacked on each other. */
  readonly series: readonly Series[]
  readonly periods: readonly string[]
  /** Number of last periods whose values may still grow; they are drawn lighter. */
  readonly unfinished: number
  readonly chosen: Signal<number | null>
  readonly numberText: (value: number) => string
  /** The values of a period in words. */
  readonly periodText: (at: number) => string
}) {
  const { title, total, series, periods, unfinished, chosen, numberText, periodText } = props
  const count = periods.length
  const sums = periods.map((_, at) =>
    series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0),
  )
  if (sums.every((sum) => sum === 0)) return <EmptyChart title={title} total={total} />
  const top = axisMaximum(Math.max(...sums))
  const { value: at } = chosen
  const now = at ?? count - 1
  const choose = (next: number): void => {
    chosen.value = Math.max(0, Math.min(count - 1, next))
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = {
      ArrowLeft: now - 1,
      ArrowDown: now - 1,
      ArrowRight: now + 1,
      ArrowUp: now + 1,
      Home: 0,
      End: count - 1,
    }
    const next = steps[event.key]
    if (next === undefined) return
    event.preventDefault()
    choose(next)
  }
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
        {series.length === 1 ? null : (
          <span class="chart-legend tiny soft">
            {series.map(({ color, label }) => (
              <span key={color} class={color}>
                {label}
              </span>
            ))}
          </span>
        )}
        <span class="soft small">{at === null ? total : periodText(at)}</span>
      </figcaption>
      <div class="chart-body">
        <div class="chart-axis faint tiny" aria-hidden="true">
          <span>{numberText(top)}</span>
          <span>{numberText(0)}</span>
        </div>
        <svg
          viewBox={`0 0 ${count * BAR} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="slider"
          tabindex={0}
          aria-label={title}
          aria-valuemin={0}
          aria-valuemax={count - 1}
          aria-valuenow={now}
          aria-valuetext={periodText(now)}
          onKeyDown={onKeyDown}
          onFocus={() => choose(now)}
          onBlur={() => (chosen.value = null)}
          onPointerMove={(event) => {
            const { left, width } = event.currentTarget.getBoundingClientRect()
            choose(Math.floor(((event.clientX - left) / width) * count))
          }}
          onPointerLeave={() => (chosen.value = null)}
        >
          <path class="grid" d={`M0 0H${count * BAR}M0 ${HEIGHT / 2}H${count * BAR}`} />
          {at === null ? null : (
            <rect class="chosen" x={at * BAR} y={0} width={BAR} height={HEIGHT} />
          )}
          {series.map(({ color }, n) => (
            <g key={color} class={color}>
              <path d={barsPath(series, n, top, 0, count - unfinished)} />
              <path class="unfinished" d={barsPath(series, n, top, count - unfinished, count)} />
            </g>
          ))}
        </svg>
      </div>
      <div class="chart-times faint tiny" aria-hidden="true">
        <span>{periods[0]}</span>
        <span>{periods[Math.floor(count / 2)]}</span>
        <span>{periods.at(-1)}</span>
      </div>
    </figure>
  )
}

/** Shown instead of a chart in which every value is zero. */
function EmptyChart({ title, total }: { readonly title: string; readonly total: string }) {
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
      </figcaption>
      <p class="chart-none soft small">{total}</p>
    </figure>
  )
}

/**
 * The bars of one series, on those of the series before it.
 * @param first number of the first period.
 * @param end number of the period after the last.
 */
function barsPath(
  series: readonly Series[],
  which: number,
  top: number,
  first: number,
  end: number,
): string {
  const own = series[which]?.values ?? []
  const bars = own.flatMap((value, at) => {
    if (value === null || value === 0 || at < first || at >= end) return []
    const below = series.slice(0, which).reduce((sum, { values }) => sum + (values[at] ?? 0), 0)
    const height = (amount: number): number => HEIGHT - (amount / top) * HEIGHT
    // A bar is at least one unit high, so that a small value next to a large one stays visible.
    const from = height(below)
    const to = Math.min(height(below + value), from - 1)
    const x = at * BAR + GAP / 2
    return [`M${x} ${from.toFixed(1)}V${to.toFixed(1)}h${BAR - GAP}V${from.toFixed(1)}z`]
  })
  return bars.join('')
}
