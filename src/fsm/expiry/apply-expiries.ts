import type { CommandContext } from '../apply/command-context.ts'
import type { State } from '../records/state.ts'
import { roleAttributesAtLogTime } from './role-attribute-expiry.ts'

/**
 * Ends all access that has expired by log time. Restores access whose expiry is in the future
 * again, because an operator reset log time or a restore has replaced the records.
 */
export function applyAllExpiries(state: State, context: CommandContext): void {
  // The audit record of the entry does not list each of these changes.
  const quiet = { ...context, logTimeMs: state.logTimeMs, touched: [] }
  for (const id of Array.from(state.table('servicePolicy').ids)) applyPolicyExpiry(state, id, quiet)
  for (const id of Array.from(state.table('identity').ids))
    applyRoleAttributeExpiries(state, id, quiet)
}

/**
 * Makes a policy ineffective once log time has reached its expiry, and effective again if its
 * expiry is in the future.
 */
export function applyPolicyExpiry(state: State, id: string, context: CommandContext): void {
  const policy = state.get('servicePolicy', id)
  const { logTimeMs: updatedAt, index: revision } = context
  if (policy === undefined) return
  const isEnded = policy.expiresAt !== null && policy.expiresAt <= updatedAt
  if (isEnded === policy.isEnded) return
  state.put('servicePolicy', { ...policy, isEnded, updatedAt, revision })
  context.touched.push({ action: 'patch', entity: 'servicePolicy', id, fields: ['isEnded'] })
}

/**
 * Removes expired role attributes of an identity, and restores attributes whose expiry is in the
 * future again.
 */
export function applyRoleAttributeExpiries(
  state: State,
  id: string,
  context: CommandContext,
): void {
  const identity = state.get('identity', id)
  const { logTimeMs: updatedAt, index: revision } = context
  if (identity === undefined) return
  const settled = roleAttributesAtLogTime(identity, updatedAt)
  if (settled === null) return
  state.put('identity', { ...identity, ...settled, updatedAt, revision })
  context.touched.push({ action: 'patch', entity: 'identity', id, fields: ['roleAttributes'] })
}
