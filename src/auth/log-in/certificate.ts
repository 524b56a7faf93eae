import { identityAuthPolicy } from '../../fsm/apply/authentication.ts'
import type { RefusalCause, LogInRefusalReason } from '../../lib/refusal-reason.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { PresentedCertificates } from '../../pki/verify/client-chain.ts'
import {
  type CertificateHolder,
  findCertificateHolder,
  type TrustDeps,
} from '../certificates/client-certificate.ts'
import type { CredentialProof } from './proof.ts'
import { proposalNowMs } from '../../lib/clock.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { CertificateAdoption } from '../certificates/certificate-adoption.ts'

export interface CertificateLogInDeps extends TrustDeps {
  readonly reads: LatestReads
  readonly adoption: CertificateAdoption
}

/**
 * Authenticates by the client certificate of the connection.
 * @returns the proof, or the reason of a refusal, which only the operator sees. The client receives
 * the same response for every reason, so that it does not learn which certificates, CAs and
 * identities exist.
 */
export async function authenticateByCertificate(
  deps: CertificateLogInDeps,
  chain: PresentedCertificates,
  address: string,
): Promise<CredentialProof | RefusalCause> {
  // Reads the latest state, because the local state may lack a change that another controller has
  // just made to the certificate or its CA.
  await deps.reads.reachLatest()
  const adoptable = deps.adoption.adoptableHolder(chain)
  if (adoptable !== null && refusalOf(deps, adoptable) === null) {
    await deps.adoption.ofHolder(adoptable, chain[0], address)
  }
  return checkCertificateLocally(deps, chain)
}

/**
 * Checks a certificate against the local state, which may lack the newest changes of other
 * controllers.
 */
export function checkCertificateLocally(
  deps: TrustDeps,
  chain: PresentedCertificates,
): CredentialProof | RefusalCause {
  const holder = findCertificateHolder(deps, chain)
  if ('reason' in holder) return { reason: holder.code }
  const reason = refusalOf(deps, holder)
  if (reason !== null) return { reason }
  const { identity, authenticator, externalId, ca, hasImproperChain } = holder
  const certificate = {
    fingerprint: chain[0].sha1,
    caId: ca?.id ?? '',
    improperChain: hasImproperChain,
    externalId,
  }
  return { identityId: identity.id, authenticator, certificate }
}

/** Whether two checks of a certificate found the same identity, by the same records. */
export function isSameCredentialProof(one: CredentialProof, other: CredentialProof): boolean {
  return (
    one.identityId === other.identityId &&
    one.authenticator?.id === other.authenticator?.id &&
    one.certificate?.caId === other.certificate?.caId &&
    one.certificate?.externalId === other.certificate?.externalId &&
    one.certificate?.improperChain === other.certificate?.improperChain
  )
}

function refusalOf(
  deps: TrustDeps,
  { identity, leafTime }: CertificateHolder,
): LogInRefusalReason | null {
  if (isDisabled(identity, proposalNowMs(deps))) return 'IDENTITY_DISABLED'
  const rules = identityAuthPolicy(deps.state, identity)?.primary.cert
  if (rules?.allowed !== true) return 'METHOD_NOT_ALLOWED'
  // A certificate that is not valid yet is always refused, even if the policy allows expired ones.
  // @guard certificate-of-a-ca--early, certificate-of-a-ca--expired
  if (leafTime === 'valid' || (leafTime === 'expired' && rules.allowExpiredCerts)) return null
  return leafTime === 'expired' ? 'CERTIFICATE_EXPIRED' : 'CERTIFICATE_NOT_YET_VALID'
}
