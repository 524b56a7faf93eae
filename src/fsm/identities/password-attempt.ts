import { fromBinary } from '@bufbuild/protobuf'
import { PasswordAttemptSchema } from '../../../proto/gen/command_pb.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { isLockedOut, identityLockoutRules, nextAttemptNumber } from '../apply/authentication.ts'
import type { State } from '../records/state.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, refusedOutcome } from '../apply/outcome.ts'

/**
 * Counts an attempt before its password is hashed, or resets the count when the password was
 * correct. The log orders the attempts, so the policy's limit applies even to guesses at several
 * controllers or at the same time.
 */
export function countPasswordAttempt(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { authenticatorId, proven } = fromBinary(PasswordAttemptSchema, payload)
  const authenticator = state.get('authenticator', authenticatorId)
  const identity = state.get('identity', authenticator?.identityId ?? '')
  if (identity === undefined) return refusedOutcome('INVALID_AUTH')
  if (proven) {
    deletePasswordAttempts(state, authenticatorId)
    return acceptedOutcome('')
  }
  const rules = identityLockoutRules(state, identity, state.featureLevel)
  if (rules === undefined || isDisabled(identity, context.logTimeMs))
    return refusedOutcome('INVALID_AUTH')
  // The auth policy does not limit attempts; it may have changed after the proposal.
  if (rules.maxAttempts <= 0) return acceptedOutcome('')
  const known = state.get('passwordAttempts', authenticatorId)
  if (isLockedOut(known, rules, context.logTimeMs)) return refusedOutcome('INVALID_AUTH')
  const count = nextAttemptNumber(known, rules, context.logTimeMs)
  const { logTimeMs, index: revision } = context
  state.put('passwordAttempts', {
    id: authenticatorId,
    authenticatorId,
    count,
    lastAt: logTimeMs,
    createdAt: known?.createdAt ?? logTimeMs,
    updatedAt: logTimeMs,
    revision,
  })
  // Among wrong attempts, only the one that locks the password is audited: a record for each
  // attempt would fill the audit log.
  if (count >= rules.maxAttempts) {
    const action = 'patch'
    context.touched.push({ action, entity: 'authenticator', id: authenticatorId, fields: LOCKOUT })
  }
  return acceptedOutcome('')
}

const LOCKOUT = ['lockout'] as const

/**
 * Resets the count. Called after a correct password or another log-in with the authenticator, when
 * the identity is enabled, and when an administrator is recovered.
 */
export function deletePasswordAttempts(state: State, authenticatorId: string): void {
  if (state.get('passwordAttempts', authenticatorId) === undefined) return
  state.remove('passwordAttempts', authenticatorId)
}

/** Resets the count of failed attempts, which unlocks the passwords of the identity. */
export function deleteIdentityPasswordAttempts(state: State, identityId: string): void {
  for (const id of state.table('authenticator').indexes.ids('identityId', identityId)) {
    deletePasswordAttempts(state, id)
  }
}
