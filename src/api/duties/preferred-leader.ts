import type { MemberView } from '../../ports/cluster-view.ts'

/** Where priorities differ, the voters that have the highest one. */
export function preferredLeaders(members: readonly MemberView[]): ReadonlySet<string> {
  const known = members.flatMap(({ id, voter, vitals }) =>
    voter && vitals !== null ? [{ id, priority: vitals.priority }] : [],
  )
  const highest = Math.max(...known.map(({ priority }) => priority))
  const preferred = known.filter(({ priority }) => priority === highest)
  return new Set(preferred.length === known.length ? [] : preferred.map(({ id }) => id))
}
