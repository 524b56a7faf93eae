import { fromBinary } from '@bufbuild/protobuf'
import { AuthenticatorRequestExtendSchema, CaVerifySchema } from '../../../proto/gen/command_pb.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, notFoundOutcome, refusedOutcome } from '../apply/outcome.ts'

/**
 * Marks a CA as verified. Clients may then enroll and log in with certificates from this CA, if the
 * CA is enabled for enrollment or log-in. A verification cannot be undone.
 */
export function verifyCa(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const { id } = fromBinary(CaVerifySchema, payload)
  const ca = state.get('ca', id)
  if (ca === undefined) return notFoundOutcome('ca', id)
  if (ca.isVerified) return refusedOutcome('CA_ALREADY_VERIFIED')
  const { logTimeMs: updatedAt, index: revision } = context
  state.put('ca', { ...ca, isVerified: true, updatedAt, revision })
  return acceptedOutcome(id)
}

/**
 * Requests that a client replace its certificate when the client next logs in with that
 * certificate.
 */
export function requestCertificateExtension(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { id, rollKeys } = fromBinary(AuthenticatorRequestExtendSchema, payload)
  const authenticator = state.get('authenticator', id)
  if (authenticator === undefined) return notFoundOutcome('authenticator', id)
  if (authenticator.method !== 'cert') return refusedOutcome('CAN_NOT_UPDATE_AUTHENTICATOR')
  const { logTimeMs: updatedAt, index: revision } = context
  state.put('authenticator', {
    ...authenticator,
    isExtendRequested: true,
    isKeyRollRequested: rollKeys,
    extendRequestedAt: updatedAt,
    updatedAt,
    revision,
  })
  return acceptedOutcome(id)
}
