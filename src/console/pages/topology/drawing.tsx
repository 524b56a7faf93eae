import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { visibleText } from '../../app/visible-text.ts'
import { Notice, Skeleton } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { type Circuit, type Graph, type GraphLink, usesLink } from './graph.ts'
import { computeLayout, type Positions } from './layout.ts'

const MARGIN = 70
const NODE_RADIUS = 9
const LABEL_BELOW = 26

interface Point {
  readonly x: number
  readonly y: number
}

/** Draws the network as SVG. The tables below contain the same information as text. */
export function Drawing(props: { readonly graph: Graph; readonly circuit: Circuit | null }) {
  const { topology } = texts
  const { graph, circuit } = props
  const places = useSignal<ReadonlyMap<string, Point> | null>(null)
  const fault = useSignal(false)
  const shape = [...graph.nodes.map(({ id }) => id), ...graph.links.map(({ id }) => id)].join(' ')
  useEffect(() => {
    const cancel = new AbortController()
    const request = {
      nodes: graph.nodes.map(({ id }) => id),
      links: graph.links.map(({ from, to }) => [from, to] as const),
    }
    computeLayout(request, cancel.signal).then(
      (found) => (places.value = pointsOf(found)),
      () => (fault.value = true),
    )
    return () => cancel.abort()
  }, [shape])
  if (fault.value) return <Notice tone="warn">{topology.notDrawn}</Notice>
  const { value: points } = places
  if (points === null) {
    return (
      <div class="panel panel-body" aria-busy="true">
        <Skeleton />
      </div>
    )
  }
  return (
    <figure class="panel drawing">
      <svg
        viewBox={boxOf(points)}
        role="img"
        aria-label={topology.drawing(graph.nodes.length, graph.links.length)}
      >
        {graph.links.map((link) => (
          <Line
            key={link.id}
            link={link}
            from={points.get(link.from)}
            to={points.get(link.to)}
            isTaken={circuit !== null && usesLink(circuit, link)}
          />
        ))}
        {graph.nodes.map(({ id, name, isOnline }) => {
          const point = points.get(id)
          if (point === undefined) return null
          const isOnWay = circuit?.routers.includes(id) === true
          return (
            <g key={id} class={`node ${isOnline ? 'on' : 'off'} ${isOnWay ? 'taken' : ''}`}>
              <circle cx={point.x} cy={point.y} r={NODE_RADIUS} />
              <text x={point.x} y={point.y + LABEL_BELOW} text-anchor="middle">
                <title>{visibleText(name)}</title>
                {labelOf(name, isOnline)}
              </text>
            </g>
          )
        })}
      </svg>
    </figure>
  )
}

const LABEL_CHARACTERS_MAX = 24

/**
 * The label is shortened; the table below the drawing and the label's tooltip contain the whole
 * name.
 */
function labelOf(name: string, isOnline: boolean): string {
  const text = visibleText(name)
  const clipped =
    text.length <= LABEL_CHARACTERS_MAX ? text : `${text.slice(0, LABEL_CHARACTERS_MAX - 1)}…`
  return isOnline ? clipped : texts.topology.offline(clipped)
}

function Line(props: {
  readonly link: GraphLink
  readonly from: Point | undefined
  readonly to: Point | undefined
  readonly isTaken: boolean
}) {
  const { link, from, to, isTaken } = props
  if (from === undefined || to === undefined) return null
  const state = `${link.isDown ? 'down' : ''} ${isTaken ? 'taken' : ''}`
  return (
    <g class={`link ${state}`}>
      <line x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      <text x={(from.x + to.x) / 2} y={(from.y + to.y) / 2 - 6} text-anchor="middle">
        {texts.topology.linkLabel(link.latencyMs, link.cost)}
      </text>
    </g>
  )
}

function pointsOf(positions: Positions): ReadonlyMap<string, Point> {
  return new Map(positions.map(([id, x, y]) => [id, { x, y }]))
}

/**
 * Maximum width of a drawing, so that one with few routers is not enlarged to the page width and
 * its text has normal size.
 */
const WIDTH_MAX = 960
const PAGE_MARGINS = 40
const HEIGHT_MIN = 340

/** The rectangle that contains all points. */
function boxOf(points: ReadonlyMap<string, Point>): string {
  const all = [...points.values()]
  const [xs, ys] = [all.map(({ x }) => x), all.map(({ y }) => y)]
  const width = Math.min(WIDTH_MAX, innerWidth - PAGE_MARGINS)
  const [left, right] = spanOf(Math.min(...xs), Math.max(...xs), width)
  const [top, bottom] = spanOf(Math.min(...ys), Math.max(...ys), HEIGHT_MIN)
  return `${left} ${top} ${right - left} ${bottom - top}`
}

function spanOf(from: number, to: number, least: number): readonly [number, number] {
  const lacking = Math.max(0, least - (to - from + 2 * MARGIN)) / 2
  return [from - MARGIN - lacking, to + MARGIN + lacking]
}
