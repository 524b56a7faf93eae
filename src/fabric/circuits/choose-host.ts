import type { Host, HostedService } from './hosts.ts'
import type { CircuitPath } from './path.ts'

export interface HostCandidate {
  readonly host: Host
  readonly path: CircuitPath
}

/** What stands before every difference of costs. */
const PRECEDENCE_COST = { required: 0, default: 1e9, failed: 2e9 } as const

/**
 * @param drawn 0 to 1, for the strategies that draw.
 * @returns null when there is none.
 */
export function chooseHost(
  candidates: readonly HostCandidate[],
  strategy: HostedService['strategy'],
  drawn: number,
): HostCandidate | null {
  const best = preferred(candidates)
  if (best.length === 0) return null
  const ordered = [...best].sort((a, b) => costOf(a) - costOf(b) || compareIds(a, b))
  if (strategy === 'random') return ordered[Math.floor(drawn * ordered.length)] ?? null
  if (strategy === 'weighted') return byWeight(ordered, drawn)
  return ordered[0] ?? null
}

/**
 * Those of the best precedence that is there: a host that failed is dialed when there is no other.
 */
function preferred(candidates: readonly HostCandidate[]): readonly HostCandidate[] {
  const least = Math.min(...candidates.map(({ host }) => PRECEDENCE_COST[host.precedence]))
  return candidates.filter(({ host }) => PRECEDENCE_COST[host.precedence] === least)
}

function costOf({ host, path }: HostCandidate): number {
  return host.cost + path.cost
}

function compareIds(a: HostCandidate, b: HostCandidate): number {
  return a.host.terminatorId < b.host.terminatorId ? -1 : 1
}

/** The cheaper, the likelier: by what is left to the dearest. */
function byWeight(ordered: readonly HostCandidate[], drawn: number): HostCandidate | null {
  const dearest = Math.max(...ordered.map(costOf))
  const weights = ordered.map((each) => dearest - costOf(each) + 1)
  let left = drawn * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [at, each] of ordered.entries()) {
    left -= weights[at] ?? 0
    if (left <= 0) return each
  }
  return ordered.at(-1) ?? null
}
