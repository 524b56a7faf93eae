import type { KindName } from '../src/entities/kind-records.ts'
import { policy } from '../test/fsm/support/log.ts'
import type { AccessDifference, PreviewedWrite } from '../src/fsm/access/access-difference.ts'
import { type AccessSize, large, Network } from './access.ts'

// Measures the cost of previewing writes on the largest supported network: `node
// bench/access-preview.ts`.

export interface PreviewCost {
  readonly case: string
  readonly given: number
  readonly taken: number
  readonly tookMs: number
  /** Processor time of the preview, which does not depend on the load of the machine. */
  readonly usedMs: number
  /** The longest time for which the event loop could run no other work. */
  readonly longestTurnMs: number
  /** Time to read the last page of gained or lost pairs. */
  readonly lastPageMs: number
}

const caller = { isAdmin: true, permissions: [] }

function costOf(network: Network, name: string, writes: readonly PreviewedWrite[]): PreviewCost {
  const cpu = process.cpuUsage()
  const started = performance.now()
  const preview = network.reader.previewAccess(writes, caller)
  if (preview.outcome !== 'judged') throw new Error(`${name}: ${JSON.stringify(preview)}`)
  let turn = started
  let longestTurnMs = 0
  let found: AccessDifference | null = null
  for (let isDone = false; !isDone;) {
    const step = preview.difference.next()
    const now = performance.now()
    longestTurnMs = Math.max(longestTurnMs, now - turn)
    turn = now
    isDone = step.done === true
    if (step.done === true) found = step.value
  }
  if (found === null) throw new Error(`${name}: nothing changes meanwhile`)
  const tookMs = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  const sum = (of: string): number =>
    (found?.pairs ?? []).reduce((all, { change, count }) => all + (change === of ? count : 0), 0)
  const last = performance.now()
  for (const { count, page } of found.pairs) page(Math.max(0, count - 100), 100)
  return {
    case: name,
    given: sum('given'),
    taken: sum('taken'),
    tookMs,
    usedMs: (user + system) / 1000,
    longestTurnMs,
    lastPageMs: performance.now() - last,
  }
}

export function benchPreview(size: AccessSize): readonly PreviewCost[] {
  const network = new Network(size)
  const all = ['#all']
  const write = (
    mode: PreviewedWrite['mode'],
    entity: KindName,
    id: string,
    fields: PreviewedWrite['fields'] = {},
  ): PreviewedWrite[] => [{ mode, entity, id, fields }]
  const servicePolicy = (identityRoles: string[], serviceRoles: string[]) =>
    write('create', 'servicePolicy', 'new', policy('new', identityRoles, serviceRoles))
  const routers = { name: 'new', semantic: 'AnyOf', edgeRouterRoles: all }
  return [
    costOf(network, 'a policy between two departments', servicePolicy(['#d3'], ['#d50'])),
    costOf(network, 'a policy of half the departments', servicePolicy(departments(50), all)),
    costOf(network, 'a policy of all with all', servicePolicy(all, all)),
    costOf(network, 'a policy of all with one service', servicePolicy(all, ['@s7'])),
    costOf(network, 'a policy goes', write('delete', 'servicePolicy', 'p3')),
    costOf(
      network,
      'a policy means others',
      write('patch', 'servicePolicy', 'p3', {
        identityRoles: ['#site1'],
        serviceRoles: ['#tier1'],
      }),
    ),
    costOf(
      network,
      'a service has other roles',
      write('patch', 'service', 's3', { roleAttributes: ['d1', 'd2'] }),
    ),
    costOf(
      network,
      'an identity has other roles',
      write('patch', 'identity', 'i3', { roleAttributes: ['d1', 'd2'] }),
    ),
    costOf(
      network,
      'all identities may use all edge routers',
      write('create', 'edgeRouterPolicy', 'new', { ...routers, identityRoles: all }),
    ),
  ]
}

function departments(count: number): string[] {
  return Array.from({ length: count }, (_, n) => `#d${n}`)
}

if (import.meta.main) {
  const { identities, services, policies } = large
  console.log(`${identities} identities, ${services} services, ${policies} service policies`)
  for (const cost of benchPreview(large)) {
    const ms = (value: number): string => `${value.toFixed(1)} ms`
    console.log(
      `${cost.case}: ${cost.given} given, ${cost.taken} taken in ${ms(cost.tookMs)} (processor ${ms(cost.usedMs)}), longest turn ${ms(cost.longestTurnMs)}, last page ${ms(cost.lastPageMs)}`,
    )
  }
}
