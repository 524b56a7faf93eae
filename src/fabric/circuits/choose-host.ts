import type { ServiceHost, HostedService } from './host-lookup.ts'
import type { CircuitPath } from './path.ts'

export interface HostCandidate {
  readonly host: ServiceHost
  readonly path: CircuitPath
}

export interface HostChoiceRules {
  readonly strategy: HostedService['strategy']
  /** Random number, at least 0 and less than 1, for the random and weighted strategies. */
  readonly drawn: number
  /**
   * ID of the terminator that the client used before, for the sticky strategy; '' if there is none.
   */
  readonly sticksTo: string
  /**
   * Returns the additional cost of a terminator, on top of the cost in its record and the cost of
   * its path.
   */
  readonly costAt: (terminatorId: string) => number
}

/** Rank of each precedence. Only the candidates with the lowest rank are considered. */
const PRECEDENCE_RANK = { required: 0, default: 1, failed: 2 } as const

/**
 * Chooses a host by the terminator strategy of the service.
 * @returns null if there are no candidates.
 */
export function chooseHost(
  candidates: readonly HostCandidate[],
  { strategy, drawn, sticksTo, costAt }: HostChoiceRules,
): HostCandidate | null {
  const best = preferred(candidates)
  if (best.length === 0) return null
  const ordered = best
    .map((candidate): Costed => {
      const { host, path } = candidate
      return { candidate, cost: host.cost + path.cost + costAt(host.terminatorId) }
    })
    .sort((a, b) => a.cost - b.cost || compareIds(a.candidate, b.candidate))
  if (strategy === 'random') return ordered[Math.floor(drawn * ordered.length)]?.candidate ?? null
  if (strategy === 'weighted') return byWeight(ordered, drawn)
  const kept = best.find(({ host }) => host.terminatorId === sticksTo)
  if (strategy === 'sticky' && kept !== undefined) return kept
  return ordered[0]?.candidate ?? null
}

interface Costed {
  readonly candidate: HostCandidate
  readonly cost: number
}

/**
 * The candidates with the best precedence: a terminator with precedence `failed` is used only if
 * there are no others.
 */
function preferred(candidates: readonly HostCandidate[]): readonly HostCandidate[] {
  const least = Math.min(...candidates.map(({ host }) => PRECEDENCE_RANK[host.precedence]))
  return candidates.filter(({ host }) => PRECEDENCE_RANK[host.precedence] === least)
}

function compareIds(a: HostCandidate, b: HostCandidate): number {
  return a.host.terminatorId < b.host.terminatorId ? -1 : 1
}

/**
 * Chooses randomly. The weight of a host is one minus its share of the total cost, so cheaper hosts
 * get more circuits.
 */
function byWeight(ordered: readonly Costed[], drawn: number): HostCandidate | null {
  const total = ordered.reduce((sum, { cost }) => sum + cost, 0)
  const weightOf = ({ cost }: Costed): number =>
    total === 0 || ordered.length === 1 ? 1 : 1 - cost / total
  let left = drawn * ordered.reduce((sum, each) => sum + weightOf(each), 0)
  for (const each of ordered) {
    left -= weightOf(each)
    if (left <= 0) return each.candidate
  }
  return ordered.at(-1)?.candidate ?? null
}
