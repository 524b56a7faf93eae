import type { State } from '../records/state.ts'
import { belongsToPrivileged } from './authority.ts'
import type { CommandContext, Consequences } from './context.ts'
import { createConsequences } from './references.ts'

// Callers with few rights may read the enrollment tokens of identities without rights, and of
// routers. Once such an identity gains rights, or an administrator allows names for a router, these
// callers could use its open enrollments to get more rights, or a certificate for these names.

/** Level from which on an identity that gains a right loses its open enrollments. */
export const WITHDRAWN_FROM_LEVEL = 2

/** Fields of an enrollment that name who is to enroll. */
type Subject = 'identityId' | 'edgeRouterId' | 'transitRouterId'

/**
 * Removes every open enrollment of an identity or a router; the audit record of the entry names
 * each.
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
 * Removes the open enrollments of all identities with rights and of all routers with names: nothing
 * says whether they had fewer before, or have since.
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

/** Called at the raise to the level: promotions before it kept the enrollments. */
export function withdrawPrivilegedEnrollmentsAtLevel(
  state: State,
  from: number,
  context: CommandContext,
): void {
  if (from >= WITHDRAWN_FROM_LEVEL || state.featureLevel < WITHDRAWN_FROM_LEVEL) return
  withdrawPrivilegedEnrollments(state, context)
}
