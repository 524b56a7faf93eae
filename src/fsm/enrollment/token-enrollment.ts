import { fromBinary } from '@bufbuild/protobuf'
import { type TokenEnroll, TokenEnrollSchema } from '../../../proto/gen/command_pb.ts'
import type { AuthPolicy } from '../../entities/kinds/auth-policy.ts'
import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { findEnabledSigner, acceptsSignerTokens } from '../apply/external-tokens.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { addCertificateAuthenticator, findUniqueName } from './enrollment.ts'
import { acceptedOutcome, fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import { unprintableNameRefusal } from '../apply/printable-names.ts'
import { createWriteConsequences } from '../apply/references.ts'

/**
 * Creates an identity for a client that presents an external JWT. The JWT was verified before the
 * proposal, and the signer must still have the revision that it had then. The state machine also
 * checks what the signer and its auth policy allow.
 */
export function enrollByExternalJwt(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(TokenEnrollSchema, payload)
  const { signerId, identityId, externalId, certificate } = message
  const signer = findEnabledSigner(state, signerId)
  if (signer === undefined || externalId === '') return refusedOutcome('INVALID_ENROLLMENT_JWT')
  if (certificate !== undefined && certificate.caId !== '') {
    return refusedOutcome('CERTIFICATE_FAILED_VALIDATION')
  }
  if (state.table('identity').indexes.owner('externalId', externalId) !== undefined) {
    return refusedOutcome('ENROLLMENT_IDENTITY_ALREADY_ENROLLED')
  }
  const policy = state.get('authPolicy', signer.enrollAuthPolicyId)
  const reason = tokenEnrollmentRefusal(signer, policy, certificate !== undefined)
  // @guard enrollment-by-any-token--apply
  if (reason !== null) return refusedOutcome('INVALID_ENROLLMENT_NOT_ALLOWED', reason)
  if (identityId === '' || state.get('identity', identityId) !== undefined) {
    return fieldFaultOutcome({ field: 'id', reason: 'id must be unique' })
  }
  return state.transact(() => admit(state, message, signer, context))
}

/**
 * Reason why a JWT from the signer does not allow an enrollment; null when it does.
 * `isToCertificate`: the identity enrolls to log in with a certificate; otherwise, with JWTs of the
 * signer.
 */
export function tokenEnrollmentRefusal(
  signer: ExternalJwtSigner,
  policy: AuthPolicy | undefined,
  isToCertificate: boolean,
): string | null {
  if (isToCertificate) {
    if (!signer.enrollToCertEnabled)
      return 'the signer does not let identities enroll to a certificate'
    return policy?.primary.cert.allowed === true
      ? null
      : 'the auth policy for enrolled identities does not allow certificates'
  }
  if (!signer.enrollToTokenEnabled) return 'the signer does not let identities enroll to its tokens'
  // A JWT names an enrolled identity by its external id. If the signer looks up identities by id,
  // the identity could never log in.
  if (!signer.useExternalId) return 'the signer does not identify by external id'
  return acceptsSignerTokens(policy, signer.id)
    ? null
    : 'the auth policy for enrolled identities does not allow tokens of the signer'
}

function admit(
  state: State,
  message: TokenEnroll,
  { enrollAuthPolicyId }: ExternalJwtSigner,
  context: CommandContext,
): Outcome {
  const { identityId, externalId, roleAttributes, authenticatorId, certificate } = message
  const name = findUniqueName(state, message.name)
  if (name === null)
    return fieldFaultOutcome({ field: 'name', reason: 'no number makes the name unique' })
  // @guard names-at-a-terminal--token
  const fault = unprintableNameRefusal(state, 'name', name)
  if (fault !== null) return fault
  context.touched.push({ action: 'create', entity: 'identity', id: identityId, fields: [] })
  createWriteConsequences(state, context).put('identity', identityId, {
    name,
    typeId: 'Default',
    roleAttributes,
    externalId,
    authPolicyId: enrollAuthPolicyId,
  })
  if (certificate === undefined) return acceptedOutcome(identityId)
  const made = { id: authenticatorId, identityId, enrolledBy: null }
  const added = addCertificateAuthenticator(state, made, certificate, context)
  return added.ok ? acceptedOutcome(identityId) : added
}
