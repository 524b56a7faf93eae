import type { State } from '../records/state.ts'
import { belongsToPrivileged } from './authority.ts'
import type { CommandContext, Consequences } from './context.ts'
import { createConsequences } from './references.ts'

// Callers with few rights may read the enrollment tokens of identities without rights, and of
// routers. If such an identity later gained rights, or an administrator permitted names for a
// router, these callers could use its open enrollments to get more rights, or a certificate with
// these names. So the open enrollments are withdrawn then.

/** Feature level from which an identity that gains a right loses its open enrollments. */
export const WITHDRAWN_FROM_LEVEL = 2

/** Fields of an enrollment that name the record that enrolls. */
type Subject = 'identityId' | 'edgeRouterId' | 'transitRouterId'

/**
 * Removes every open enrollment of an identity or a router. The audit record of the entry lists
 * each of them.
 */
export function withdrawEnrollmentsOf(
  field: Subject,
  subjectId: string,
  { state, context, remove }: Consequences,
): void {
  for (const id of Array.from(state.table('enrollment').indexes.ids(field, subjectId))) {
    context.touched.push({ action: 'delete', entity: 'enrollment', id, fields: [] })
    remove('enrollment', id)
  }
}

/**
 * Removes the open enrollments of all identities with rights and of all routers with names: the
 * records do not show whether they gained these after the enrollment was created.
 */
export function withdrawPrivilegedEnrollments(state: State, context: CommandContext): void {
  const { remove } = createConsequences(state, context)
  for (const id of Array.from(state.table('enrollment').ids)) {
    const enrollment = state.get('enrollment', id)
    if (enrollment !== undefined && belongsToPrivileged(state, 'enrollment', enrollment)) {
      remove('enrollment', id)
    }
  }
}

/**
 * Called when the cluster is raised to that level, because earlier gains of rights kept the
 * enrollments.
 */
export function withdrawPrivilegedEnrollmentsAtLevel(
  state: State,
  from: number,
  context: CommandContext,
): void {
  if (from >= WITHDRAWN_FROM_LEVEL || state.featureLevel < WITHDRAWN_FROM_LEVEL) return
  withdrawPrivilegedEnrollments(state, context)
}
