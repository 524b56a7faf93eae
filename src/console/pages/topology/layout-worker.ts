import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from 'd3-force'

import { type LayoutRequest, type NodePositions, initialNodePosition } from './layout.ts'

interface Placed {
  readonly id: string
  x: number
  y: number
}

const TICKS = 260

/**
 * Computes the layout of a graph in a worker thread. It uses no random numbers: the same graph
 * always gets the same layout.
 */
self.onmessage = ({ data }: MessageEvent<LayoutRequest>): void => {
  const nodes: Placed[] = data.nodes.map((id, at) => ({ id, ...initialNodePosition(id, at) }))
  const links = data.links.map(([source, target]) => ({ source, target }))
  forceSimulation(nodes)
    .force('charge', forceManyBody().strength(-900))
    .force(
      'link',
      forceLink<Placed, (typeof links)[number]>(links)
        .id(({ id }) => id)
        .distance(210),
    )
    .force('collide', forceCollide(42))
    .force('x', forceX(0).strength(0.06))
    .force('y', forceY(0).strength(0.09))
    .stop()
    .tick(TICKS)
  const positions: NodePositions = nodes.map(({ id, x, y }) => [id, Math.round(x), Math.round(y)])
  self.postMessage(positions)
}
