import { StateReader } from '../src/fsm/state-reader.ts'
import { newShortId } from '../src/lib/random.ts'
import type { ListQuery } from '../src/ports/state-view.ts'
import { heading, percentile } from './support/report.ts'
import { ClusterState } from '../src/fsm/access/cluster-state.ts'

const filters: Readonly<Record<string, ListQuery>> = {
  'equality on an indexed field': { filter: 'name = "device-4242"', limit: 100 },
  'set membership': { filter: 'anyOf(roleAttributes) = "group-7"', limit: 100 },
  'prefix range and sort': {
    filter: 'name >= "device-42" and name < "device-43"',
    sort: 'name',
    limit: 100,
  },
  'icontains scan': { filter: 'name icontains "E-424"', limit: 100 },
  'and, or and tags': {
    filter: 'tags.site = "site-3" and (tags.floor > 7 or not isAdmin and name contains "99")',
    limit: 100,
  },
  'sort by name, no filter': { sort: 'name desc', limit: 100, offset: 5000 },
}

export interface QueryResult {
  readonly title: string
  readonly totalCount: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Average processor time, which is independent of other load on the machine. */
  readonly cpuMs: number
}

/**
 * Fills the state with identities: writes them like the state machine, and removes the changes like
 * its write-behind.
 */
export function filledState(count: number): ClusterState {
  const state = new ClusterState()
  for (let i = 0; i < count; i += 1) {
    const at = 1_700_000_000_000 + i
    state.put('identity', {
      id: newShortId(),
      createdAt: at,
      updatedAt: at,
      revision: i,
      name: `device-${(i * 7919) % count}`,
      typeId: 'Default',
      authPolicyId: 'default',
      roleAttributes: [`group-${i % 100}`, `site-${i % 13}`],
      tags: { site: `site-${i % 13}`, floor: i % 11 },
    })
    if (state.dirtyCharacters > 1024 * 1024) state.takeDirty()
  }
  state.takeDirty()
  return state
}

/** Measures lists of 100 with each filter, `rounds` times for each. */
export function benchQuery(count: number, rounds: number): QueryResult[] {
  const reader = new StateReader(filledState(count), { nowMs: () => 0, monotonicMs: () => 0 })
  return Object.entries(filters).map(([title, query]) => {
    const times: number[] = []
    const startedCpu = process.threadCpuUsage()
    let totalCount = 0
    for (let round = 0; round < rounds; round += 1) {
      const started = performance.now()
      totalCount = reader.list('identity', query).totalCount
      times.push(performance.now() - started)
    }
    const { user, system } = process.threadCpuUsage(startedCpu)
    const cpuMs = (user + system) / 1000 / rounds
    const [p50Ms, p99Ms] = [percentile(times, 0.5), percentile(times, 0.99)]
    return { title, totalCount, p50Ms, p99Ms, cpuMs }
  })
}

if (import.meta.main) {
  const count = 100_000
  console.log(heading(`lists of 100 out of ${count} identities`))
  for (const { title, totalCount, p50Ms, p99Ms, cpuMs } of benchQuery(count, 200)) {
    const wall = `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`
    const cpu = `processor ${cpuMs.toFixed(3)} ms, ${Math.round((cpuMs * 1e6) / count)} ns a record`
    console.log(`${title}: ${wall}; ${cpu}; ${totalCount} found`)
  }
}
