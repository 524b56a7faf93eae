import type { LiveDataRow } from '../live/live-data.ts'
import { pathRouters } from '../live/circuit-path.ts'
import type { Point } from './viewport.ts'

export interface GraphNode {
  readonly id: string
  readonly name: string
  readonly isOnline: boolean
  /** False for a router without a certificate, which cannot be online before it enrolls. */
  readonly isEnrolled: boolean
  /** Since when the router has been online or offline, RFC 3339; null: not known. */
  readonly since: string | null
}

export interface GraphLink {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly isDown: boolean
  readonly cost: number
  readonly latencyMs: number
}

export interface Graph {
  readonly nodes: readonly GraphNode[]
  readonly links: readonly GraphLink[]
}

export interface DrawnCircuit {
  readonly id: string
  readonly service: string
  readonly serviceId: string
  /** Id of the identity that dialed; '' if the circuit has none. */
  readonly clientId: string
  /** Ids of the routers on the circuit's path, in order. */
  readonly routers: readonly string[]
}

export const DRAWN_NODES_MAX = 300
const NANOSECONDS_PER_MS = 1_000_000

/** Sorts routers and links by id, so that the same network always looks the same. */
export function buildGraph(routers: readonly LiveDataRow[], links: readonly LiveDataRow[]): Graph {
  const nodes = routers
    .map(({ id, name, isOnline, connected, fingerprint, onlineSince, offlineSince }) => ({
      id,
      name: typeof name === 'string' && name !== '' ? name : id,
      isOnline: isOnline === true || connected === true,
      isEnrolled: fingerprint !== null,
      since: textIn(onlineSince) ?? textIn(offlineSince),
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  const known = new Set(nodes.map(({ id }) => id))
  const drawn = links
    .map((link) => ({
      id: link.id,
      from: idIn(link['sourceRouter']),
      to: idIn(link['destRouter']),
      isDown: link['down'] === true,
      cost: numberIn(link['cost']),
      latencyMs:
        Math.max(numberIn(link['sourceLatency']), numberIn(link['destLatency'])) /
        NANOSECONDS_PER_MS,
    }))
    .filter(({ from, to }) => known.has(from) && known.has(to))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  return { nodes, links: drawn }
}

/** A router, the routers that are linked with it, and all links between them. */
export function neighborhood({ nodes, links }: Graph, id: string): Graph {
  const near = links.filter(({ from, to }) => from === id || to === id)
  const ids = new Set([id, ...near.flatMap(({ from, to }) => [from, to])])
  return {
    nodes: nodes.filter((node) => ids.has(node.id)),
    links: links.filter(({ from, to }) => ids.has(from) && ids.has(to)),
  }
}

export function readCircuits(rows: readonly LiveDataRow[]): readonly DrawnCircuit[] {
  return rows.map((row) => {
    const { service } = row as {
      readonly service?: { readonly name?: unknown; readonly id?: unknown }
    }
    return {
      id: row.id,
      service: textIn(service?.name) ?? '',
      serviceId: textIn(service?.id) ?? '',
      clientId: textIn(row['clientId']) ?? '',
      routers: pathRouters(row['path']).map(({ id }) => id),
    }
  })
}

/** True if the circuit's path contains the link, in either direction. */
export function pathContainsLink({ routers }: DrawnCircuit, { from, to }: GraphLink): boolean {
  return routers.some((id, at) => {
    const next = routers[at + 1]
    return (id === from && next === to) || (id === to && next === from)
  })
}

/** The circuits whose path contains the router. */
export function circuitsThroughRouter(
  circuits: readonly DrawnCircuit[],
  id: string,
): readonly DrawnCircuit[] {
  return circuits.filter(({ routers }) => routers.includes(id))
}

/** The circuits whose path contains the link. */
export function circuitsOverLink(
  circuits: readonly DrawnCircuit[],
  link: GraphLink,
): readonly DrawnCircuit[] {
  return circuits.filter((circuit) => pathContainsLink(circuit, link))
}

/** The nearest node in the direction of an arrow key; null: there is none. */
export function nodeToward(
  from: Point,
  key: string,
  points: ReadonlyMap<string, Point>,
): string | null {
  let [best, least] = [null as string | null, Infinity]
  for (const [id, { x, y }] of points) {
    const [ahead, aside] = towards(key, x - from.x, y - from.y)
    if (ahead <= 0) continue
    // A node that is far to the side is not what the user means by the direction.
    const distance = ahead + 2 * Math.abs(aside)
    if (distance < least) [best, least] = [id, distance]
  }
  return best
}

function towards(key: string, dx: number, dy: number): readonly [number, number] {
  switch (key) {
    case 'ArrowRight':
      return [dx, dy]
    case 'ArrowLeft':
      return [-dx, dy]
    case 'ArrowDown':
      return [dy, dx]
    case 'ArrowUp':
      return [-dy, dx]
    default:
      return [0, 0]
  }
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function idIn(value: unknown): string {
  const { id } = (value ?? {}) as { readonly id?: unknown }
  return typeof id === 'string' ? id : ''
}

function numberIn(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}
