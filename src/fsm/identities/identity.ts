import { fromBinary } from '@bufbuild/protobuf'
import { IdentityDisableSchema, IdentityEnableSchema } from '../../../proto/gen/command_pb.ts'
import { disableMinutesMax } from '../../entities/parts/identity-credentials.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import { adminLossReason } from '../apply/admins.ts'
import { identityActionRefusal } from '../apply/actor-rights.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { deleteMfaAttempts } from './mfa-attempt.ts'
import { acceptedOutcome, notFoundOutcome, refusedOutcome } from '../apply/outcome.ts'
import { deleteIdentityPasswordAttempts } from './password-attempt.ts'
import { endSessionsReferencing } from '../apply/session-validity.ts'

/** Disables an identity: it can open no session, and the same log entry ends its open sessions. */
export function disableIdentity(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { id, durationMinutes } = fromBinary(IdentityDisableSchema, payload)
  const identity = state.get('identity', id)
  if (identity === undefined) return notFoundOutcome('identity', id)
  const denial = identityActionRefusal(state, id, context)
  if (denial !== null) return denial
  const { logTimeMs, index } = context
  const minutes = Math.min(Number(durationMinutes), disableMinutesMax)
  const disabledUntil = minutes === 0 ? null : logTimeMs + minutes * 60_000
  const disabled = { ...identity, disabledAt: logTimeMs, disabledUntil }
  if (identity.isAdmin) {
    const change = { kind: 'identity', id, after: disabled } as const
    const reason = adminLossReason(state, change, logTimeMs)
    if (reason !== null) return refusedOutcome('ENTITY_CAN_NOT_BE_UPDATED', reason)
  }
  endSessionsReferencing({ state, context }, 'identityId', id)
  state.put('identity', {
    ...disabled,
    updatedAt: logTimeMs,
    revision: index,
  })
  return acceptedOutcome(id)
}

/** Enables an identity again, unlocks its passwords, and ends the pause after wrong TOTP codes. */
export function enableIdentity(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { id } = fromBinary(IdentityEnableSchema, payload)
  const identity = state.get('identity', id)
  if (identity === undefined) return notFoundOutcome('identity', id)
  const denial = identityActionRefusal(state, id, context)
  if (denial !== null) return denial
  deleteIdentityPasswordAttempts(state, id)
  deleteMfaAttempts(state, id)
  const { logTimeMs: updatedAt, index: revision } = context
  state.put('identity', {
    ...identity,
    disabledAt: null,
    disabledUntil: null,
    updatedAt,
    revision,
  })
  return acceptedOutcome(id)
}
