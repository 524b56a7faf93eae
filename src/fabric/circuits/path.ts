import type { LiveLinks, PathLink } from '../../ports/live-table.ts'

/** The path of a circuit: routers and the links between them. */
export interface CircuitPath {
  /** Routers from the client's router to the terminator's router; at least one. */
  readonly routerIds: readonly string[]
  /** Links between consecutive routers, so one fewer than `routerIds`. */
  readonly links: readonly PathLink[]
  readonly cost: number
}

export interface PathRules {
  /** Cost of the router itself, which is added to the cost of the links. */
  readonly routerCost: (routerId: string) => number
  /** True if circuits may begin and end at the router, but not pass through it. */
  readonly isEndOnly: (routerId: string) => boolean
}

interface Reached {
  readonly cost: number
  readonly by: PathLink | null
  readonly from: string
}

/**
 * The cheapest paths from one router to others (Dijkstra's algorithm) over links that are up. For
 * equal costs, the IDs of routers and links decide, so that the same network always gives the same
 * paths. The search ends when all targets are reached.
 */
export function cheapestPaths(
  start: string,
  goals: ReadonlySet<string>,
  links: Pick<LiveLinks, 'visitUsable'>,
  rules: PathRules,
): ReadonlyMap<string, CircuitPath> {
  const reached = new Map<string, Reached>([[start, { cost: 0, by: null, from: '' }]])
  const settled = new Set<string>()
  const open: Open = new Open()
  open.push(start, 0)
  let missing = goals.size
  for (let id = open.pop(); id !== undefined && missing > 0; id = open.pop()) {
    if (settled.has(id)) continue
    settled.add(id)
    if (goals.has(id)) missing -= 1
    if (id !== start && rules.isEndOnly(id)) continue
    const { cost } = reached.get(id) as Reached
    links.visitUsable(id, (to, linkCost, link) => {
      if (settled.has(to) || (rules.isEndOnly(to) && !goals.has(to))) return
      const total = cost + linkCost + rules.routerCost(to)
      const known = reached.get(to)
      if (known !== undefined && !isBetter(total, link, known)) return
      reached.set(to, { cost: total, by: link, from: id })
      open.push(to, total)
    })
  }
  const found = new Map<string, CircuitPath>()
  for (const goal of goals) if (settled.has(goal)) found.set(goal, pathTo(goal, reached))
  return found
}

function isBetter(cost: number, link: PathLink, known: Reached): boolean {
  return cost < known.cost || (cost === known.cost && link.id < (known.by?.id ?? ''))
}

function pathTo(goal: string, reached: ReadonlyMap<string, Reached>): CircuitPath {
  const routerIds = [goal]
  const links: PathLink[] = []
  let at = reached.get(goal)
  const cost = at?.cost ?? 0
  for (let by = at?.by ?? null; at !== undefined && by !== null; by = at?.by ?? null) {
    links.unshift(by)
    routerIds.unshift(at.from)
    at = reached.get(at.from)
  }
  return { routerIds, links, cost }
}

/** A binary heap of routers whose shortest path is not final, ordered by cost and then by ID. */
class Open {
  readonly #heap: { readonly id: string; readonly cost: number }[] = []

  push(id: string, cost: number): void {
    const heap = this.#heap
    let at = heap.push({ id, cost }) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(at, parent)) break
      this.#swap(at, parent)
      at = parent
    }
  }

  pop(): string | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first?.id
    heap[0] = last
    for (let at = 0; ;) {
      const [left, right] = [2 * at + 1, 2 * at + 2]
      let least = at
      if (left < heap.length && this.#isBefore(left, least)) least = left
      if (right < heap.length && this.#isBefore(right, least)) least = right
      if (least === at) return first.id
      this.#swap(at, least)
      at = least
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]]
    if (one === undefined || other === undefined) return false
    return one.cost < other.cost || (one.cost === other.cost && one.id < other.id)
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heap[a], this.#heap[b]]
    if (one === undefined || other === undefined) return
    this.#heap[a] = other
    this.#heap[b] = one
  }
}
