import type { Identity } from '../../entities/identity.ts'
import type { State } from '../state.ts'

export function isDisabled(
  identity: Pick<Identity, 'disabledAt' | 'disabledUntil'>,
  atMs: number,
): boolean {
  if (identity.disabledAt === null) return false
  return identity.disabledUntil === null || identity.disabledUntil > atMs
}

/** Said to whoever would take the last administrator away. */
export const lastAdminReason =
  'it is the last administrator that is not disabled; make another identity an administrator first'

/** Whether the network keeps somebody who can administer it, at that time, without this identity. */
export function hasOtherAdmin(state: State, identityId: string, atMs: number): boolean {
  for (const id of state.table('identity').indexes.ids('isAdmin', 'true')) {
    if (id === identityId) continue
    const other = state.get<Identity>('identity', id)
    if (other !== undefined && !isDisabled(other, atMs)) return true
  }
  return false
}
