import type { CommandContext } from '../apply/context.ts'
import type { State } from '../records/state.ts'
import { settledRoleAttributes } from './role-attribute-ends.ts'

/**
 * Ends all access whose end log time has reached, and restores access that ends later: log time was
 * set back, or a restore has replaced the records.
 */
export function settleEnds(state: State, context: CommandContext): void {
  // The audit record of the entry does not list each of them.
  const quiet = { ...context, logTimeMs: state.logTimeMs, touched: [] }
  for (const id of Array.from(state.table('servicePolicy').ids)) settlePolicyEnd(state, id, quiet)
  for (const id of Array.from(state.table('identity').ids)) settleIdentityEnds(state, id, quiet)
}

/** Ends a policy whose end log time has reached; a later end puts it in force again. */
export function settlePolicyEnd(state: State, id: string, context: CommandContext): void {
  const policy = state.get('servicePolicy', id)
  const { logTimeMs: updatedAt, index: revision } = context
  if (policy === undefined) return
  const isEnded = policy.expiresAt !== null && policy.expiresAt <= updatedAt
  if (isEnded === policy.isEnded) return
  state.put('servicePolicy', { ...policy, isEnded, updatedAt, revision })
  context.touched.push({ action: 'patch', entity: 'servicePolicy', id, fields: ['isEnded'] })
}

/** The same for the role attributes of an identity. */
export function settleIdentityEnds(state: State, id: string, context: CommandContext): void {
  const identity = state.get('identity', id)
  const { logTimeMs: updatedAt, index: revision } = context
  if (identity === undefined) return
  const settled = settledRoleAttributes(identity, updatedAt)
  if (settled === null) return
  state.put('identity', { ...identity, ...settled, updatedAt, revision })
  context.touched.push({ action: 'patch', entity: 'identity', id, fields: ['roleAttributes'] })
}
