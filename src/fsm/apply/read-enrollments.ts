import type { State } from '../records/state.ts'
import { isOfPrivileged } from './authority.ts'
import type { CommandContext } from './context.ts'
import type { Consequences } from './kind-rules.ts'
import { consequencesIn } from './references.ts'

// Callers with few rights may read the tokens of identities without any. Once such an identity
// gains rights, its open enrollments would let these callers enroll as somebody with more rights.

/** Level from which on an identity that gains a right loses its open enrollments. */
export const WITHDRAWN_FROM_LEVEL = 2

/** Removes every open enrollment of an identity; the audit record of the entry names each. */
export function withdrawEnrollmentsOf(
  identityId: string,
  { state, context, remove }: Consequences,
): void {
  for (const id of Array.from(state.table('enrollment').indexes.ids('identityId', identityId))) {
    context.touched.push({ action: 'delete', entity: 'enrollment', id, fields: [] })
    remove('enrollment', id)
  }
}

/**
 * Removes the open enrollments of all identities with rights: nothing says whether they had fewer
 * before, or have since.
 */
export function withdrawPrivilegedEnrollments(state: State, context: CommandContext): void {
  const { remove } = consequencesIn(state, context)
  for (const id of Array.from(state.table('enrollment').ids)) {
    const enrollment = state.get('enrollment', id)
    if (enrollment !== undefined && isOfPrivileged(state, 'enrollment', enrollment)) {
      remove('enrollment', id)
    }
  }
}

/** Does so as the level comes into force, as promotions of before it kept the enrollments. */
export function withdrawAtLevel(state: State, from: number, context: CommandContext): void {
  if (from >= WITHDRAWN_FROM_LEVEL || state.featureLevel < WITHDRAWN_FROM_LEVEL) return
  withdrawPrivilegedEnrollments(state, context)
}
