import type { State } from '../records/state.ts'
import { isOwnedByPrivileged } from './actor-rights.ts'
import type { CommandContext, WriteConsequences } from './command-context.ts'
import { createWriteConsequences } from './references.ts'

// Callers with few rights may read the enrollment tokens of identities without rights, and of
// routers. If such an identity later gains rights, or an administrator permits names for such a
// router, these callers could use its open enrollments to get more rights, or a certificate with
// these names. A write that gives these rights or names therefore withdraws the open enrollments.

/** Feature level from which an identity that gains a right loses its open enrollments. */
export const ENROLLMENT_WITHDRAWAL_FEATURE_LEVEL = 2

/** Fields of an enrollment that reference the identity or router to be enrolled. */
type Subject = 'identityId' | 'edgeRouterId' | 'transitRouterId'

/**
 * Removes every open enrollment of an identity or a router. The audit record of the entry lists
 * each removed enrollment.
 */
export function withdrawEnrollments(
  field: Subject,
  subjectId: string,
  { state, context, remove }: WriteConsequences,
): void {
  for (const id of Array.from(state.table('enrollment').indexes.ids(field, subjectId))) {
    context.touched.push({ action: 'delete', entity: 'enrollment', id, fields: [] })
    remove('enrollment', id)
  }
}

/**
 * Removes the open enrollments of all identities with rights and of all routers with permitted
 * names. The records do not show whether the rights or names came after the enrollment, so all of
 * them are removed.
 */
export function withdrawPrivilegedEnrollments(state: State, context: CommandContext): void {
  const { remove } = createWriteConsequences(state, context)
  for (const id of Array.from(state.table('enrollment').ids)) {
    const enrollment = state.get('enrollment', id)
    if (enrollment !== undefined && isOwnedByPrivileged(state, 'enrollment', enrollment)) {
      remove('enrollment', id)
    }
  }
}

/**
 * Calls `withdrawPrivilegedEnrollments` when the cluster is raised to
 * `ENROLLMENT_WITHDRAWAL_FEATURE_LEVEL`: below that level, an identity that gained rights kept its
 * enrollments.
 */
export function withdrawPrivilegedEnrollmentsAtLevel(
  state: State,
  from: number,
  context: CommandContext,
): void {
  if (
    from >= ENROLLMENT_WITHDRAWAL_FEATURE_LEVEL ||
    state.featureLevel < ENROLLMENT_WITHDRAWAL_FEATURE_LEVEL
  )
    return
  withdrawPrivilegedEnrollments(state, context)
}
