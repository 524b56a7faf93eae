import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

import { visibleText } from '../../app/visible-text.ts'
import { IconButton } from '../../controls/button.tsx'
import { Notice, Skeleton } from '../../controls/status.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import {
  type DrawnCircuit,
  circuitsOverLink,
  type Graph,
  type GraphLink,
  type GraphNode,
  nodeToward,
  pathContainsLink,
} from './graph.ts'
import { type PlacedLabel, placeLabels } from './labels.ts'
import { computeLayout } from './computed-layout.ts'
import type { NodePositions } from './layout.ts'
import { panBy, type Point, scrollToPoint, type Viewport, zoomBy } from './viewport.ts'

/** Room around the outermost routers, for their labels. */
const MARGIN = 80
const NODE_RADIUS = 14
const ZOOM_STEP = 1.5
const LINK_WIDTH = 1.5
const LINK_WIDTH_MAX = 7

/** A router or a link that the user points at or has chosen. */
export interface TopologyTarget {
  readonly kind: 'router' | 'link'
  readonly id: string
}

export interface TopologyDrawingProps {
  readonly graph: Graph
  readonly circuits: readonly DrawnCircuit[]
  readonly circuit: DrawnCircuit | null
  /** The router or link under the pointer; null: none. */
  readonly pointed: TopologyTarget | null
  /** The router or link that the user has chosen; null: none. */
  readonly chosen: TopologyTarget | null
  readonly onPoint: (target: TopologyTarget | null) => void
  readonly onChoose: (target: TopologyTarget | null) => void
}

/** Draws the network as SVG. The tables below contain the same information as text. */
export function TopologyDrawing(props: TopologyDrawingProps) {
  const { topology } = pageTexts
  const { graph } = props
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
      () => {
        if (!cancel.signal.aborted) fault.value = true
      },
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
  return <NetworkMap {...props} points={points} />
}

/** The labels of routers and links that have a place, by the IDs of routers and links. */
function placedLabels(
  { graph, circuits }: TopologyDrawingProps,
  points: ReadonlyMap<string, Point>,
  names: ReadonlyMap<string, string>,
  unit: number,
) {
  return placeLabels(
    graph.nodes.flatMap(({ id }) => requestOf(id, points.get(id), names.get(id))),
    graph.links.flatMap((link) => {
      const to = points.get(link.to)
      const [request] = requestOf(link.id, points.get(link.from), linkText(link, circuits))
      return to === undefined || request === undefined ? [] : [{ ...request, to }]
    }),
    unit,
  )
}

/** Draws routers and links at the given positions; the user can zoom and move the drawing. */
function NetworkMap(props: TopologyDrawingProps & { readonly points: ReadonlyMap<string, Point> }) {
  const { topology } = pageTexts
  const { graph, circuits, circuit, pointed, chosen, onChoose } = props
  const target = chosen ?? pointed
  const figure = useRef<HTMLElement>(null)
  const width = useSignal(WIDTH_MAX)
  useEffect(() => {
    if (figure.current !== null) width.value = figure.current.clientWidth
  }, [])
  const points = spread(props.points, width.value)
  const whole = boxOf(points, width.value)
  const chosenView = useSignal<Viewport | null>(null)
  const view = fitting(whole, chosenView.value)
  const svg = useRef<SVGSVGElement>(null)
  // Labels and nodes keep their size on the screen, so that a zoom makes room between them.
  const unit = view.width / whole.width
  const setView = (next: Viewport): void => void (chosenView.value = next)
  const zoom = (factor: number, at?: Point): void => setView(zoomBy(whole, view, factor, at))
  const names = new Map(graph.nodes.map((node) => [node.id, labelOf(node)]))
  const labels = placedLabels(props, points, names, unit)
  const near = target === null ? null : nearOf(graph, target)
  const tabStop = chosen?.kind === 'router' ? chosen.id : (graph.nodes[0]?.id ?? '')
  const goToward = (id: string, key: string): void => {
    const from = points.get(id)
    const next = from === undefined ? null : nodeToward(from, key, points)
    const at = next === null ? undefined : points.get(next)
    if (next === null || at === undefined) return
    setView(scrollToPoint(whole, view, at))
    svg.current?.querySelector<SVGGElement>(`[data-id="${CSS.escape(next)}"]`)?.focus()
  }
  const onKey = (event: KeyboardEvent, { id }: GraphNode): void => {
    const { key } = event
    if (key === 'Enter' || key === ' ') onChoose({ kind: 'router', id })
    else if (key === 'Escape') onChoose(null)
    else if (key === '+') zoom(ZOOM_STEP, points.get(id))
    else if (key === '-') zoom(1 / ZOOM_STEP, points.get(id))
    else if (key.startsWith('Arrow')) goToward(id, key)
    else return
    event.preventDefault()
  }
  return (
    <figure class="panel drawing" ref={figure}>
      <svg
        ref={svg}
        viewBox={`${view.x} ${view.y} ${view.width} ${view.height}`}
        role="group"
        aria-label={topology.drawing(graph.nodes.length, graph.links.length)}
        onWheel={(event) => {
          // Without a modifier, the wheel scrolls the page.
          if (!event.ctrlKey && !event.metaKey) return
          event.preventDefault()
          zoom(Math.exp(-event.deltaY / 300), pointOf(event, view))
        }}
        onPointerDown={(event) =>
          drag(event, (dx, dy) => setView(panBy(whole, view, -dx, -dy)), view)
        }
        onClick={({ target: clicked }) => {
          if (clicked === svg.current) onChoose(null)
        }}
      >
        {graph.links.map((link) => (
          <Line
            key={link.id}
            link={link}
            from={points.get(link.from)}
            to={points.get(link.to)}
            label={labels.get(link.id)}
            text={linkText(link, circuits)}
            circuitCount={circuitsOverLink(circuits, link).length}
            unit={unit}
            state={stateOf(near, link.id, circuit !== null && pathContainsLink(circuit, link))}
            onPoint={props.onPoint}
            onChoose={onChoose}
          />
        ))}
        {graph.nodes.map((node) => (
          <Router
            key={node.id}
            node={node}
            point={points.get(node.id)}
            label={labels.get(node.id)}
            text={names.get(node.id) ?? ''}
            unit={unit}
            state={stateOf(near, node.id, circuit?.routers.includes(node.id) === true)}
            isChosen={chosen?.kind === 'router' && chosen.id === node.id}
            isTabStop={node.id === tabStop}
            onPoint={props.onPoint}
            onChoose={onChoose}
            onKey={onKey}
          />
        ))}
      </svg>
      <Foot onZoom={(factor) => zoom(factor)} onShowAll={() => (chosenView.value = null)} />
    </figure>
  )
}

function Router(props: {
  readonly node: GraphNode
  readonly point: Point | undefined
  readonly label: PlacedLabel | undefined
  readonly text: string
  readonly unit: number
  readonly state: string
  readonly isChosen: boolean
  readonly isTabStop: boolean
  readonly onPoint: (target: TopologyTarget | null) => void
  readonly onChoose: (target: TopologyTarget | null) => void
  readonly onKey: (event: KeyboardEvent, node: GraphNode) => void
}) {
  const { node, point, label, unit, isChosen } = props
  if (point === undefined) return null
  const target: TopologyTarget = { kind: 'router', id: node.id }
  return (
    <g
      data-id={node.id}
      class={`node ${nodeClass(node)} ${props.state} ${isChosen ? 'chosen' : ''}`}
      role="button"
      tabindex={props.isTabStop ? 0 : -1}
      aria-pressed={isChosen}
      onPointerEnter={() => props.onPoint(target)}
      onPointerLeave={() => props.onPoint(null)}
      onClick={() => props.onChoose(isChosen ? null : target)}
      onKeyDown={(event) => props.onKey(event, node)}
    >
      <title>{pageTexts.topology.routerLabel(visibleText(node.name), node.isOnline)}</title>
      <circle
        cx={point.x}
        cy={point.y}
        r={NODE_RADIUS * unit}
        style={{ strokeWidth: `${3 * unit}px` }}
      />
      {label === undefined ? null : <Label at={label} text={props.text} size={14 * unit} />}
    </g>
  )
}

/** Legend and zoom of the drawing. */
function Foot(props: {
  readonly onZoom: (factor: number) => void
  readonly onShowAll: () => void
}) {
  const { cell } = texts
  const { topology } = pageTexts
  return (
    <figcaption class="drawing-foot">
      <span class="legend">
        {Object.entries({
          on: cell.online,
          off: cell.offline,
          new: cell.notEnrolled,
        }).map(([state, word]) => (
          <span key={state}>
            <i class={`dot ${state}`} aria-hidden="true" /> {word}
          </span>
        ))}
        <span class="faint">{topology.legend}</span>
      </span>
      <span class="zoom">
        <IconButton
          icon="minus"
          label={topology.zoomOut}
          onClick={() => props.onZoom(1 / ZOOM_STEP)}
        />
        <IconButton icon="plus" label={topology.zoomIn} onClick={() => props.onZoom(ZOOM_STEP)} />
        <IconButton icon="whole" label={topology.showAll} onClick={props.onShowAll} />
      </span>
    </figcaption>
  )
}

function nodeClass({ isOnline, isEnrolled }: GraphNode): string {
  if (isOnline) return 'on'
  return isEnrolled ? 'off' : 'new'
}

const LABEL_CHARACTERS_MAX = 24

/**
 * The label is shortened; the details and the table below the drawing contain the whole name.
 */
function labelOf({ name, isOnline, isEnrolled }: GraphNode): string {
  const text = visibleText(name)
  const clipped =
    text.length <= LABEL_CHARACTERS_MAX ? text : `${text.slice(0, LABEL_CHARACTERS_MAX - 1)}…`
  return isOnline || !isEnrolled ? clipped : pageTexts.topology.offline(clipped)
}

function linkText(link: GraphLink, circuits: readonly DrawnCircuit[]): string {
  return pageTexts.topology.linkLabel(link.latencyMs, circuitsOverLink(circuits, link).length)
}

function requestOf(id: string, at: Point | undefined, text: string | undefined) {
  return at === undefined || text === undefined ? [] : [{ id, at, text }]
}

/** Ids of the target and of everything that is linked with it. */
function nearOf({ links }: Graph, { kind, id }: TopologyTarget): ReadonlySet<string> {
  const near = new Set([id])
  for (const link of links) {
    const isNear = kind === 'link' ? link.id === id : link.from === id || link.to === id
    if (isNear) for (const one of [link.id, link.from, link.to]) near.add(one)
  }
  return near
}

function stateOf(near: ReadonlySet<string> | null, id: string, isTaken: boolean): string {
  return `${near !== null && !near.has(id) ? 'away' : ''} ${isTaken ? 'taken' : ''}`
}

function Label(props: { readonly at: PlacedLabel; readonly text: string; readonly size: number }) {
  const { at, text, size } = props
  return (
    <text
      aria-hidden="true"
      x={at.x}
      y={at.y}
      text-anchor={at.anchor}
      style={{ fontSize: `${size}px` }}
    >
      {text}
    </text>
  )
}

function Line(props: {
  readonly link: GraphLink
  readonly from: Point | undefined
  readonly to: Point | undefined
  /** Undefined if the label of the link would overlap a router or another label. */
  readonly label: PlacedLabel | undefined
  readonly text: string
  readonly circuitCount: number
  readonly unit: number
  readonly state: string
  readonly onPoint: (target: TopologyTarget | null) => void
  readonly onChoose: (target: TopologyTarget | null) => void
}) {
  const { link, from, to, label, circuitCount, unit, state, onPoint, onChoose } = props
  if (from === undefined || to === undefined) return null
  const ends = { x1: from.x, y1: from.y, x2: to.x, y2: to.y }
  const width = Math.min(LINK_WIDTH_MAX, LINK_WIDTH + Math.log2(1 + circuitCount))
  const target: TopologyTarget = { kind: 'link', id: link.id }
  return (
    <g
      class={`link ${link.isDown ? 'down' : ''} ${state}`}
      onPointerEnter={() => onPoint(target)}
      onPointerLeave={() => onPoint(null)}
      onClick={() => onChoose(target)}
    >
      <line {...ends} style={{ strokeWidth: `${width * unit}px` }} />
      <line class="reach" {...ends} style={{ strokeWidth: `${14 * unit}px` }} />
      {label === undefined ? null : <Label at={label} text={props.text} size={12 * unit} />}
    </g>
  )
}

/** A point of the drawing under the pointer. */
function pointOf(event: MouseEvent & { currentTarget: SVGSVGElement }, view: Viewport): Point {
  const { unit, left, top } = scaleOf(event.currentTarget, view)
  return { x: view.x + (event.clientX - left) * unit, y: view.y + (event.clientY - top) * unit }
}

/** The drawing is centered in its element and keeps its proportions. */
function scaleOf(svg: SVGSVGElement, view: Viewport) {
  const box = svg.getBoundingClientRect()
  const unit = Math.max(view.width / box.width, view.height / box.height)
  return {
    unit,
    left: box.left + (box.width - view.width / unit) / 2,
    top: box.top + (box.height - view.height / unit) / 2,
  }
}

/** Calls `move` with the distance from where the pointer was pressed, until it is released. */
function drag(
  down: PointerEvent & { currentTarget: SVGSVGElement },
  move: (dx: number, dy: number) => void,
  view: Viewport,
): void {
  const svg = down.currentTarget
  if (down.target !== svg || down.button !== 0) return
  const { unit } = scaleOf(svg, view)
  const onMove = ({ clientX, clientY }: PointerEvent): void =>
    move((clientX - down.clientX) * unit, (clientY - down.clientY) * unit)
  const end = new AbortController()
  svg.setPointerCapture(down.pointerId)
  svg.addEventListener('pointermove', onMove, { signal: end.signal })
  for (const type of ['pointerup', 'pointercancel'] as const) {
    svg.addEventListener(type, () => end.abort(), { signal: end.signal })
  }
}

function pointsOf(positions: NodePositions): ReadonlyMap<string, Point> {
  return new Map(positions.map(([id, x, y]) => [id, { x, y }]))
}

/** Width of the drawing before its place on the page is known. */
const WIDTH_MAX = 960
const HEIGHT_MIN = 380
/** Maximum factor by which the distances between routers are stretched. */
const SPREAD_MAX = 3
/** Minimum factor for at most `FEW_ROUTERS` routers: more of them would overlap if moved closer. */
const SPREAD_MIN = 0.5
const FEW_ROUTERS = 12

/**
 * The points, moved apart or closer to each other so that they fill the drawing. The labels keep
 * their size.
 */
function spread(points: ReadonlyMap<string, Point>, width: number): ReadonlyMap<string, Point> {
  const all = [...points.values()]
  const [xs, ys] = [all.map(({ x }) => x), all.map(({ y }) => y)]
  const factor = (values: readonly number[], room: number): number =>
    (room - 2 * MARGIN) / Math.max(1, Math.max(...values) - Math.min(...values))
  const least = points.size <= FEW_ROUTERS ? SPREAD_MIN : 1
  const [byX, byY] = [factor(xs, width), factor(ys, HEIGHT_MIN)].map((most) =>
    Math.max(least, Math.min(SPREAD_MAX, most)),
  ) as [number, number]
  return new Map([...points].map(([id, { x, y }]) => [id, { x: x * byX, y: y * byY }]))
}

/** The rectangle that contains all points. */
function boxOf(points: ReadonlyMap<string, Point>, width: number): Viewport {
  const all = [...points.values()]
  const [xs, ys] = [all.map(({ x }) => x), all.map(({ y }) => y)]
  const [left, right] = spanOf(Math.min(...xs), Math.max(...xs), width)
  const [top, bottom] = spanOf(Math.min(...ys), Math.max(...ys), HEIGHT_MIN)
  return { x: left, y: top, width: right - left, height: bottom - top }
}

function spanOf(from: number, to: number, least: number): readonly [number, number] {
  const lacking = Math.max(0, least - (to - from + 2 * MARGIN)) / 2
  return [from - MARGIN - lacking, to + MARGIN + lacking]
}

/**
 * The part of the drawing that the user chose, moved and limited so that it lies within the
 * drawing, which changes with the network.
 */
function fitting(whole: Viewport, view: Viewport | null): Viewport {
  return view === null ? whole : panBy(whole, zoomBy(whole, view, 1), 0, 0)
}
