import { fromBinary } from '@bufbuild/protobuf'
import { PasswordRehashSchema } from '../../../proto/gen/command_pb.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, refusedOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'

/**
 * Stores a stronger hash of the same password. The proposal contains the revision of the record
 * with the old hash, so it cannot overwrite a password that was changed meanwhile. Unlike a change
 * of the password, this ends no session.
 */
export function rehashPassword(
  state: State,
  payload: Uint8Array,
  { index: revision }: CommandContext,
): Outcome {
  const { authenticatorId, passwordHash } = fromBinary(PasswordRehashSchema, payload)
  const known = state.get('authenticator', authenticatorId)
  if (known?.method !== 'updb' || passwordHash === '') return refusedOutcome('INVALID_AUTH')
  state.put('authenticator', { ...known, passwordHash, revision })
  return acceptedOutcome(authenticatorId)
}
