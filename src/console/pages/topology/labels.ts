import type { Point } from './viewport.ts'

/** A label that needs a position near its point. */
export interface LabelRequest {
  readonly id: string
  readonly at: Point
  readonly text: string
}

export interface PlacedLabel extends Point {
  readonly anchor: 'start' | 'middle' | 'end'
}

interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** Sizes on the screen, in pixels. */
const NODE_RADIUS = 14
const NODE_LABEL = { character: 7.8, height: 17 }
const LINK_LABEL = { character: 6.6, height: 15 }
const GAP = 6

/**
 * Places the labels of nodes and links so that they overlap neither each other nor a node. A node
 * always gets a label, at the position with the least overlap; a link whose label would overlap
 * gets none.
 * @param unit length in the drawing of one pixel on the screen.
 */
export function placeLabels(
  nodes: readonly LabelRequest[],
  links: readonly (LabelRequest & { readonly to: Point })[],
  unit: number,
): ReadonlyMap<string, PlacedLabel> {
  const placed = new Map<string, PlacedLabel>()
  const taken: Box[] = nodes.map(({ at }) =>
    boxAround(at, NODE_RADIUS * 2 * unit, 2 * NODE_RADIUS * unit),
  )
  for (const node of nodes) {
    const choice = leastOverlap(nodeCandidates(node, unit), taken)
    placed.set(node.id, choice.label)
    taken.push(choice.box)
  }
  for (const link of links) {
    const free = linkCandidates(link, unit).find(({ box }) => overlapOf(box, taken) === 0)
    if (free === undefined) continue
    placed.set(link.id, free.label)
    taken.push(free.box)
  }
  return placed
}

interface Candidate {
  readonly label: PlacedLabel
  readonly box: Box
}

/** Below, above, right and left of the node, in order of preference. */
function nodeCandidates({ at: { x, y }, text }: LabelRequest, unit: number): readonly Candidate[] {
  const width = text.length * NODE_LABEL.character * unit
  const height = NODE_LABEL.height * unit
  const far = (NODE_RADIUS + GAP) * unit
  const beside = far + width / 2
  const centers = [
    { x, y: y + far + height / 2, anchor: 'middle' },
    { x, y: y - far - height / 2, anchor: 'middle' },
    { x: x + beside, y, anchor: 'start' },
    { x: x - beside, y, anchor: 'end' },
  ] as const
  return centers.map((center) => ({
    box: boxAround(center, width, height),
    label: {
      x: center.anchor === 'middle' ? x : center.anchor === 'start' ? x + far : x - far,
      y: center.y + height * 0.3,
      anchor: center.anchor,
    },
  }))
}

/** At the middle of the line, then nearer to each of its ends. */
function linkCandidates(
  { at, to, text }: LabelRequest & { readonly to: Point },
  unit: number,
): readonly Candidate[] {
  const width = text.length * LINK_LABEL.character * unit
  const height = LINK_LABEL.height * unit
  return [0.5, 0.35, 0.65].map((share) => {
    const x = at.x + (to.x - at.x) * share
    const y = at.y + (to.y - at.y) * share
    return {
      box: boxAround({ x, y }, width, height),
      label: { x, y: y + height * 0.3, anchor: 'middle' },
    }
  })
}

function leastOverlap(candidates: readonly Candidate[], taken: readonly Box[]): Candidate {
  const sized = candidates.map((one) => ({ one, size: overlapOf(one.box, taken) }))
  return sized.reduce((best, next) => (next.size < best.size ? next : best)).one
}

function boxAround({ x, y }: Point, width: number, height: number): Box {
  return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 }
}

/** Area that the box shares with the others. */
function overlapOf(box: Box, others: readonly Box[]): number {
  let area = 0
  for (const other of others) {
    const width = Math.min(box.right, other.right) - Math.max(box.left, other.left)
    const height = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top)
    if (width > 0 && height > 0) area += width * height
  }
  return area
}
