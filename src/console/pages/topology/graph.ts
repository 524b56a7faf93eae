import type { LiveRow } from '../live/live-data.ts'
import { pathRouters } from '../live/route.ts'

export interface GraphNode {
  readonly id: string
  readonly name: string
  readonly isOnline: boolean
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

export interface Circuit {
  readonly id: string
  readonly service: string
  /** Ids of the routers on the circuit's path, in order. */
  readonly routers: readonly string[]
}

export const DRAWN_NODES_MAX = 300
const NANOSECONDS_PER_MS = 1_000_000

/** Sorts routers and links by id, so that the same network always looks the same. */
export function buildGraph(routers: readonly LiveRow[], links: readonly LiveRow[]): Graph {
  const nodes = routers
    .map(({ id, name, isOnline, connected }) => ({
      id,
      name: typeof name === 'string' && name !== '' ? name : id,
      isOnline: isOnline === true || connected === true,
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

/** A router and the routers that are linked with it. */
export function neighborhood({ nodes, links }: Graph, id: string): Graph {
  const near = links.filter(({ from, to }) => from === id || to === id)
  const ids = new Set([id, ...near.flatMap(({ from, to }) => [from, to])])
  return {
    nodes: nodes.filter((node) => ids.has(node.id)),
    links: links.filter(({ from, to }) => ids.has(from) && ids.has(to)),
  }
}

export function readCircuits(rows: readonly LiveRow[]): readonly Circuit[] {
  return rows.map((row) => {
    const { service } = row as { readonly service?: { readonly name?: unknown } }
    return {
      id: row.id,
      service: typeof service?.name === 'string' ? service.name : '',
      routers: pathRouters(row['path']).map(({ id }) => id),
    }
  })
}

/** True if the circuit's path contains the link, in either direction. */
export function usesLink({ routers }: Circuit, { from, to }: GraphLink): boolean {
  return routers.some((id, at) => {
    const next = routers[at + 1]
    return (id === from && next === to) || (id === to && next === from)
  })
}

function idIn(value: unknown): string {
  const { id } = (value ?? {}) as { readonly id?: unknown }
  return typeof id === 'string' ? id : ''
}

function numberIn(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0
}

/** Sorts by name, as people search for routers. The drawing uses the order of ids. */
export function sortByName(nodes: readonly GraphNode[]): readonly GraphNode[] {
  return [...nodes].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }))
}
