import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { AuthPolicy } from '../../entities/kinds/auth-policy.ts'
import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { RecordSource } from '../../ports/state-view.ts'
import type { PendingFactor } from './authentication.ts'

// Checks of external JWTs that need the replicated state. Controllers verify signatures and times
// before the proposal. They make the checks in this file at authentication, and again when they
// apply the log entry, with the records at that time.

/** The signer of a request's external JWT, as it was when the controller verified the JWT. */
interface ShownSigner {
  readonly signerId: string
  readonly signerRevision: number
}

/** Returns the signer if it is enabled. */
export function findEnabledSigner(
  records: RecordSource,
  id: string,
): ExternalJwtSigner | undefined {
  const signer = records.get('externalJwtSigner', id)
  return signer?.enabled === true ? signer : undefined
}

/**
 * Whether the claim in which the signer's tokens name an identity names this identity. An empty
 * claim names no identity.
 */
export function claimMatchesIdentity(
  { useExternalId }: Pick<ExternalJwtSigner, 'useExternalId'>,
  claim: string,
  identity: Pick<Identity, 'id' | 'externalId'>,
): boolean {
  return claim !== '' && (useExternalId ? identity.externalId : identity.id) === claim
}

/** Whether identities under the policy may log in with tokens from the signer. */
export function acceptsSignerTokens(policy: AuthPolicy | undefined, signerId: string): boolean {
  if (policy?.primary.extJwt.allowed !== true) return false
  const { allowedSigners } = policy.primary.extJwt
  return allowedSigners.length === 0 || allowedSigners.includes(signerId)
}

/**
 * Factors that are still pending for a request with a JWT from the given signer. A signer that was
 * changed after the JWT was verified, or that is disabled or deleted, satisfies no factor.
 */
export function pendingFactorsWithToken(
  records: RecordSource,
  pending: readonly PendingFactor[],
  shown: ShownSigner | null,
): readonly PendingFactor[] {
  if (shown === null || pending.length === 0) return pending
  // @guard forged-tokens--factor
  if (findEnabledSigner(records, shown.signerId)?.revision !== shown.signerRevision) return pending
  return pending.filter((factor) => factor.kind !== 'extJwt' || factor.signerId !== shown.signerId)
}

/**
 * Whether the signer whose token opened the session is still accepted; true if no token opened it.
 */
export function isSessionSignerAccepted(records: RecordSource, { signerId }: ApiSession): boolean {
  return signerId === '' || findEnabledSigner(records, signerId) !== undefined
}
