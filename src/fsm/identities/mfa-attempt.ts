import { fromBinary } from '@bufbuild/protobuf'
import { MfaAttemptSchema } from '../../../proto/gen/command_pb.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { mfaLimits, mfaPausedUntilMs } from '../apply/authentication.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, notFoundOutcome, refusedOutcome } from '../apply/outcome.ts'

const PAUSE = ['pause'] as const

/**
 * Counts an attempt to submit a TOTP code before the code is checked; a correct code resets the
 * count. The log orders the attempts, so the limit applies even to guesses at several controllers
 * or at the same time.
 */
export function countMfaAttempt(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { identityId } = fromBinary(MfaAttemptSchema, payload)
  if (state.get('identity', identityId) === undefined) {
    return notFoundOutcome('identity', identityId)
  }
  const known = state.get('mfaAttempts', identityId)
  const { logTimeMs, index: revision } = context
  // @guard mfa-guesses
  if (logTimeMs < mfaPausedUntilMs(known))
    return refusedOutcome('SERVER_TOO_MANY_REQUESTS', tooMany)
  const count = (known?.count ?? 0) + 1
  state.put('mfaAttempts', {
    id: identityId,
    identityId,
    count,
    lastAt: logTimeMs,
    createdAt: known?.createdAt ?? logTimeMs,
    updatedAt: logTimeMs,
    revision,
  })
  if (count >= mfaLimits.attemptsMax) {
    context.touched.push({ action: 'patch', entity: 'mfa', id: identityId, fields: PAUSE })
  }
  return acceptedOutcome(identityId)
}

const tooMany = 'too many wrong codes were given; wait before the next attempt'

/**
 * Resets the count. Called when a code was correct, when MFA was removed, and when the identity was
 * enabled.
 */
export function deleteMfaAttempts(state: State, identityId: string): void {
  if (state.get('mfaAttempts', identityId) === undefined) return
  state.remove('mfaAttempts', identityId)
}

/**
 * Subtracts the attempt for a repeated code. Unlike a new code, a repeated code does not reset the
 * count: otherwise a client with one code could guess the next one without a pause.
 */
export function undoMfaAttempt(
  state: State,
  identityId: string,
  { index: revision }: CommandContext,
): void {
  const known = state.get('mfaAttempts', identityId)
  if (known === undefined) return
  // @guard mfa-guesses--repeated
  if (known.count <= 1) state.remove('mfaAttempts', identityId)
  else state.put('mfaAttempts', { ...known, count: known.count - 1, revision })
}
