import type { Draft } from './json-values.ts'

type Row = Draft & { readonly id: string }

/** The role that selects all records of a kind. */
export const ALL = '#all'

/** A list of roles in a policy. */
export interface RoleList {
  readonly roles: readonly string[]
  readonly semantic: string
}

/** The records that have a role attribute of some lists of roles. */
export interface RoleCandidates {
  /** Null: more records have one of these attributes than one response contains. */
  readonly rows: readonly Row[] | null
  /** Number of all records; 0 if none of the lists selects all of them. */
  readonly totalCount: number
}

/** Whether a list of roles selects a record, by the rule of the controllers. */
export function selectsRecord({ roles, semantic }: RoleList, record: Row): boolean {
  if (roles.includes(ALL) || roles.includes(`@${record.id}`)) return true
  const { roleAttributes } = record
  const own = Array.isArray(roleAttributes) ? roleAttributes : []
  const named = roles.filter((role) => role.startsWith('#'))
  const has = (role: string): boolean => own.includes(role.slice(1))
  return semantic === 'AnyOf' ? named.some(has) : named.length > 0 && named.every(has)
}

/** How many records a list of roles selects; undefined if the candidates do not contain all. */
export function countSelected(list: RoleList, candidates: RoleCandidates): number | undefined {
  if (list.roles.includes(ALL)) return candidates.totalCount
  const ids = list.roles.filter((role) => role.startsWith('@')).map((role) => role.slice(1))
  if (ids.length === list.roles.length) return ids.length
  if (candidates.rows === null) return undefined
  const selected = candidates.rows.filter((row) => selectsRecord(list, row)).map(({ id }) => id)
  return new Set([...ids, ...selected]).size
}

/** The list of roles in a field of a policy. */
export function roleListIn(policy: Row, field: string): RoleList {
  const roles = policy[field]
  return {
    roles: Array.isArray(roles) ? roles.map(String) : [],
    semantic: String(policy['semantic']),
  }
}
