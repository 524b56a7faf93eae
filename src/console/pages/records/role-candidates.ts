import { hasPermission } from '../../app/management-document.ts'
import { quoteFilterText } from './filters.ts'
import { findKindAtPath } from './kinds.ts'
import { readRows } from './record-data.ts'
import { ALL, type RoleCandidates, type RoleList } from './role-selection.ts'

/**
 * Reads what `countSelected` needs to count the records of a kind that each list of roles selects,
 * with at most two requests for all lists together; null without the permission to read the
 * records.
 */
export async function readRoleCandidates(
  path: string,
  lists: readonly RoleList[],
  signal?: AbortSignal,
): Promise<RoleCandidates | null> {
  if (!hasPermission(`${findKindAtPath(path)?.permission ?? ''}.read`)) return null
  const roles = new Set(lists.flatMap((one) => (one.roles.includes(ALL) ? [] : one.roles)))
  const attributes = [...roles].filter((role) => role.startsWith('#'))
  const quoted = attributes.map((role) => quoteFilterText(role.slice(1))).join(', ')
  const [all, named] = await Promise.all([
    lists.some((one) => one.roles.includes(ALL)) ? readRows(path, '', signal, 1) : null,
    attributes.length === 0 ? null : readRows(path, `anyOf(roleAttributes) in [${quoted}]`, signal),
  ])
  const isComplete = named === null || named.rows.length === named.totalCount
  return { rows: isComplete ? (named?.rows ?? []) : null, totalCount: all?.totalCount ?? 0 }
}
