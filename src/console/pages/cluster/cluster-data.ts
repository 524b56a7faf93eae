import type { ClusterStatus, MemberStatus } from './cluster-shapes.ts'

export type Health = 'good' | 'warn' | 'bad'

/** One failure more is fine, the next one stops writes, or none can be made now. */
export function toleranceHealth({ failureTolerance, leaderId }: ClusterStatus): Health {
  if (failureTolerance < 0 || leaderId === null) return 'bad'
  return failureTolerance === 0 ? 'warn' : 'good'
}

/** Entries that a member has not applied, of those that are committed; null when unknown. */
export function entriesBehind(
  member: MemberStatus,
  members: readonly MemberStatus[],
): number | null {
  if (member.role === 'unknown') return null
  const committed = Math.max(...members.map(({ commit }) => commit))
  return Math.max(0, committed - member.applied)
}

/** A member that was not heard for so long is away. */
const AWAY_MS = 5_000

export function isAway({ lastContactMs }: Pick<MemberStatus, 'lastContactMs'>): boolean {
  return lastContactMs === null || lastContactMs > AWAY_MS
}

export function hasMixedVersions(members: readonly MemberStatus[]): boolean {
  return new Set(members.map(({ version }) => version).filter((version) => version !== '')).size > 1
}
