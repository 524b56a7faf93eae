import { describe, expect, test } from 'vitest'

import { seededRandom } from '../../src/lib/random.ts'
import type { LiveLink, LiveLinks } from '../../src/ports/live-table.ts'
import type { ServiceHost } from '../../src/fabric/circuits/host-lookup.ts'
import { chooseHost, type HostCandidate } from '../../src/fabric/circuits/choose-host.ts'
import { cheapestPaths, type PathRules } from '../../src/fabric/circuits/path.ts'

function link(id: string, from: string, to: string, cost: number, changes = {}): LiveLink {
  return {
    id,
    iteration: 1,
    protocol: 'tls',
    dialAddress: '',
    connections: [],
    sourceRouterId: from,
    destRouterId: to,
    isDown: false,
    state: 'Connected',
    staticCost: 1,
    sourceLatencyNs: 0,
    destLatencyNs: 0,
    cost,
    ...changes,
  }
}

const plain: PathRules = { routerCost: () => 10, isEndOnly: () => false }
const among = (links: readonly LiveLink[]): Pick<LiveLinks, 'visitUsable'> => ({
  visitUsable: (id, visit) => {
    for (const found of links) {
      const { sourceRouterId, destRouterId, cost } = found
      if (sourceRouterId === id) visit(destRouterId, cost, found)
      else if (destRouterId === id) visit(sourceRouterId, cost, found)
    }
  },
})
const way = (links: readonly LiveLink[], to: string, rules = plain) =>
  cheapestPaths('a', new Set([to]), among(links), rules).get(to)

describe('the path of a circuit', () => {
  test('to a host at the client’s own router contains no link and costs nothing', () => {
    expect(way([], 'a')).toEqual({ routerIds: ['a'], links: [], cost: 0 })
  })

  test('is the cheapest one, including the cost of routers', () => {
    const links = [link('l1', 'a', 'b', 30), link('l2', 'c', 'a', 5), link('l3', 'c', 'b', 5)]
    expect(way(links, 'b')).toMatchObject({ routerIds: ['a', 'c', 'b'], cost: 30 })
    const dear = { ...plain, routerCost: (id: string) => (id === 'c' ? 40 : 10) }
    expect(way(links, 'b', dear)).toMatchObject({ routerIds: ['a', 'b'], cost: 40 })
  })

  test('does not pass through a router that is restricted to the ends of paths, but may begin or end there', () => {
    const links = [link('l1', 'a', 'c', 1), link('l2', 'c', 'b', 1)]
    const rules = { ...plain, isEndOnly: (id: string) => id === 'c' }
    expect(way(links, 'b', rules)).toBeUndefined()
    expect(way(links, 'c', rules)?.routerIds).toEqual(['a', 'c'])
    const isFirst = { ...plain, isEndOnly: (id: string) => id === 'a' }
    expect(way(links, 'b', isFirst)?.routerIds).toEqual(['a', 'c', 'b'])
  })

  test('never costs more than any other path, in random networks', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const random = seededRandom(seed)
      const ids = ['a', 'b', 'c', 'd', 'e', 'f'].slice(0, random.integer(2, 6))
      const links = Array.from({ length: random.integer(1, 12) }, (_, at) => {
        const one = () => ids[random.integer(0, ids.length - 1)] ?? 'a'
        return link(`l${at}`, one(), one(), random.integer(1, 20))
      })
      const found = cheapestPaths('a', new Set(ids), among(links), plain)
      const costs = everyCost(ids, links)
      for (const id of ids) expect(found.get(id)?.cost, `seed ${seed}, ${id}`).toBe(costs.get(id))
    }
  })
})

/**
 * Computes all costs by iterating over all links until nothing becomes cheaper (Bellman-Ford
 * algorithm).
 */
function everyCost(ids: readonly string[], links: readonly LiveLink[]): Map<string, number> {
  const costs = new Map([['a', 0]])
  for (const _ of ids) {
    for (const { sourceRouterId: one, destRouterId: other, cost } of links) {
      for (const [from, to] of [
        [one, other],
        [other, one],
      ] as const) {
        const before = costs.get(from)
        if (before === undefined) continue
        costs.set(to, Math.min(costs.get(to) ?? Infinity, before + cost + 10))
      }
    }
  }
  costs.set('a', 0)
  return costs
}

describe('for a service with several hosts,', () => {
  const candidate = (id: string, cost: number, precedence: ServiceHost['precedence'] = 'default') =>
    ({
      host: { terminatorId: id, cost, precedence } as ServiceHost,
      path: { routerIds: ['a'], links: [], cost: 0 },
    }) satisfies HostCandidate
  const chosen = (
    candidates: readonly HostCandidate[],
    strategy = 'smartrouting',
    drawn = 0,
    { sticksTo = '', costs = {} }: { sticksTo?: string; costs?: Record<string, number> } = {},
  ) =>
    chooseHost(candidates, {
      strategy: strategy as 'smartrouting',
      drawn,
      sticksTo,
      costAt: (id) => costs[id] ?? 0,
    })?.host.terminatorId

  test('the cheapest host is dialed, and among equally cheap hosts always the same one', () => {
    expect(chosen([candidate('t2', 5), candidate('t1', 5), candidate('t0', 9)])).toBe('t1')
  })

  test('a better precedence outweighs every cost', () => {
    expect(chosen([candidate('t1', 1, 'failed'), candidate('t2', 60_000)])).toBe('t2')
    expect(chosen([candidate('t1', 1), candidate('t2', 60_000, 'required')])).toBe('t2')
    expect(chosen([candidate('t1', 1, 'failed')])).toBe('t1')
  })

  test('the random strategy draws each host equally often, and the weighted strategy draws cheaper hosts more often', () => {
    const both = [candidate('t1', 0), candidate('t2', 8)]
    expect([chosen(both, 'random', 0.4), chosen(both, 'random', 0.6)]).toEqual(['t1', 't2'])
    const weighed = [candidate('t1', 2), candidate('t2', 8)]
    expect([chosen(weighed, 'weighted', 0.75), chosen(weighed, 'weighted', 0.85)]).toEqual([
      't1',
      't2',
    ])
    const free = [candidate('t1', 0), candidate('t2', 0)]
    expect([chosen(free, 'weighted', 0.4), chosen(free, 'weighted', 0.6)]).toEqual(['t1', 't2'])
  })

  test('the costs that dials and circuits add are included, except with the random strategy', () => {
    const both = [candidate('t1', 0), candidate('t2', 5)]
    const costs = { t1: 20 }
    expect(chosen(both, 'smartrouting', 0, { costs })).toBe('t2')
    expect(chosen(both, 'weighted', 0.75, { costs })).toBe('t2')
    const drawn = [0.4, 0.6].map((at) => chosen(both, 'random', at, { costs }))
    expect(drawn.sort()).toEqual(['t1', 't2'])
  })

  test('a client of a sticky service keeps its previous host, unless another host has a better precedence', () => {
    const both = [candidate('t1', 0), candidate('t2', 60)]
    expect(chosen(both, 'sticky', 0, { sticksTo: 't2' })).toBe('t2')
    expect(chosen(both, 'sticky', 0, { sticksTo: 'gone' })).toBe('t1')
    expect(chosen(both, 'smartrouting', 0, { sticksTo: 't2' })).toBe('t1')
    const failed = [candidate('t1', 0), candidate('t2', 0, 'failed')]
    expect(chosen(failed, 'sticky', 0, { sticksTo: 't2' })).toBe('t1')
  })

  test('no host is chosen if there are no candidates', () => {
    expect(chosen([])).toBeUndefined()
  })
})
