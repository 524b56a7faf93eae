import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { fieldFaultOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'
import type {
  WriteConsequences,
  KindRules,
  ValidatedWrite,
  CompletedWrite,
} from '../apply/command-context.ts'
import { endSessionsInvalidatedBy } from '../apply/session-validity.ts'

export const externalJwtSignerRules: KindRules<ExternalJwtSigner> = {
  judgeWrite: judgeSigner,
  afterWrite: endSessionsOfDisabled,
}

function endSessionsOfDisabled(
  { after }: CompletedWrite<ExternalJwtSigner>,
  consequences: WriteConsequences,
): void {
  // @guard sessions-of-a-disabled-signer--ended
  if (!after.enabled) endSessionsInvalidatedBy(consequences, 'signerId', after.id)
}

function judgeSigner(
  state: State,
  { id, after }: ValidatedWrite<ExternalJwtSigner>,
): Outcome | null {
  return keyFault(after) ?? enrollmentFault(state, id, after)
}

/**
 * Fault unless a signer has exactly one of certificate and JWKS address; null if it has. With both,
 * it would be unclear which of them verifies tokens. A certificate requires a `kid`, too.
 */
function keyFault(after: Partial<ExternalJwtSigner>): Outcome | null {
  const hasCertificate = isText(after.certPem)
  if (hasCertificate === isText(after.jwksEndpoint)) {
    const reason = 'exactly one of certPem and jwksEndpoint is needed'
    return fieldFaultOutcome({ field: hasCertificate ? 'jwksEndpoint' : 'certPem', reason })
  }
  if (hasCertificate && !(isText(after.kid) && isText(after.fingerprint))) {
    return fieldFaultOutcome({ field: 'kid', reason: 'kid is required with certPem' })
  }
  return null
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/**
 * Fault if the auth policy for enrolled identities does not accept the credential that the
 * enrollment creates; null if it does.
 */
function enrollmentFault(
  state: State,
  id: string,
  after: Partial<ExternalJwtSigner>,
): Outcome | null {
  const policyId = after.enrollAuthPolicyId ?? 'default'
  const { cert, extJwt } = state.get('authPolicy', policyId)?.primary ?? {}
  if (after.enrollToCertEnabled === true && cert?.allowed !== true) {
    const reason = 'the auth policy for enrolled identities does not allow certificates'
    return fieldFaultOutcome({ field: 'enrollToCertEnabled', reason, value: policyId })
  }
  const takesToken =
    extJwt?.allowed === true &&
    (extJwt.allowedSigners.length === 0 || extJwt.allowedSigners.includes(id))
  if (after.enrollToTokenEnabled === true && !takesToken) {
    const reason = 'the auth policy for enrolled identities does not allow tokens of this signer'
    return fieldFaultOutcome({ field: 'enrollToTokenEnabled', reason, value: policyId })
  }
  return null
}
