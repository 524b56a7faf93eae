import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Ca } from '../../entities/kinds/ca.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { Router } from '../../entities/kinds/router.ts'
import { type Certificate, isSelfIssued } from '../../pki/certificate.ts'
import {
  type ClientChainResult,
  type ClientChainInput,
  type LeafValidity,
  type PresentedCertificates,
  verifyClientChain,
} from '../../pki/verify/client-chain.ts'
import { type ExternalId, findExternalId } from '../../pki/external-id.ts'
import { parseCaCertificate, networkAuthorities } from './trusted-authorities.ts'
import type { NetworkAuthorities } from './network-authorities.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LogInRefusalReason } from '../../lib/refusal-reason.ts'
import type { Clock } from '../../lib/clock.ts'
import { firstPemCertificate } from '../../lib/text/first-pem-certificate.ts'

export interface TrustDeps {
  readonly authorities: NetworkAuthorities
  readonly state: StateView
  readonly clock: Clock
}

/** An identity found by its client certificate, and the issuer of the certificate. */
export interface CertificateHolder {
  readonly identity: Identity
  /** Undefined if the certificate identifies the identity by the external id claim of its CA. */
  readonly authenticator: Authenticator | undefined
  /**
   * External id that the claim of `ca` selects; '' if the certificate does not identify the
   * identity by a claim.
   */
  readonly externalId: string
  /** Third-party CA that issued the certificate; null: this network issued it. */
  readonly ca: Ca | null
  /**
   * State of the leaf's validity period. The auth policy decides whether an expired leaf is
   * allowed.
   */
  readonly leafTime: LeafValidity
  /** True if the chain ends at an intermediate authority of the network instead of a root. */
  readonly hasImproperChain: boolean
}

/** Reason why no identity may use a certificate: a sentence for logs, and an error code. */
interface NoHolder {
  readonly reason: string
  readonly code: LogInRefusalReason
}

/**
 * Finds the identity to which a certificate chain belongs, or the reason for a refusal, which only
 * operators see. The external id claim of a third-party CA selects the identity. If the CA has no
 * claim, or the leaf lacks the claimed value, the fingerprint selects an authenticator, whose
 * stored certificate must equal the leaf byte for byte.
 */
export function findCertificateHolder(
  deps: TrustDeps,
  chain: PresentedCertificates,
): CertificateHolder | NoHolder {
  const question = { chain, requiresClientAuth: false, leafTime: 'reported' } as const
  const byNetwork = buildNetworkChain(deps, question)
  if (byNetwork.ok) {
    const { leafTime, hasImproperChain } = byNetwork
    return holderBy(deps, chain[0], { ca: null, leafTime, hasImproperChain })
  }
  let reason = byNetwork.reason
  // @guard certificate-of-a-ca--verified
  for (const ca of deps.state.findAll('ca', 'isVerified', 'true')) {
    // @guard certificate-of-a-ca--enabled
    if (!ca.isAuthEnabled) continue
    const found = verifyChainToAnchors(deps, [parseCaCertificate(ca)], question)
    if (found.ok) {
      const { leafTime } = found
      return holderBy(deps, chain[0], { ca, leafTime, hasImproperChain: false })
    }
    reason = found.reason
  }
  return { reason, code: 'CERTIFICATE_UNTRUSTED' }
}

interface Way {
  readonly ca: Ca | null
  readonly leafTime: LeafValidity
  readonly hasImproperChain: boolean
}

function holderBy(
  { state }: TrustDeps,
  leaf: Certificate,
  { ca, leafTime, hasImproperChain }: Way,
): CertificateHolder | NoHolder {
  const common = { ca, leafTime, hasImproperChain }
  const claim = ca === null ? null : externalIdFromClaim(ca, leaf)
  if (claim?.ok === true) {
    const identity = state.find('identity', 'externalId', claim.externalId)
    if (identity === undefined)
      return { reason: 'no identity has its external id', code: 'IDENTITY_UNKNOWN' }
    return { ...common, identity, authenticator: undefined, externalId: claim.externalId }
  }
  const authenticator = state.find('authenticator', 'fingerprint', leaf.sha1)
  // @guard fingerprint-collision--identity
  if (authenticator === undefined || !matchesRecordedCertificate(leaf, authenticator.certPem)) {
    return { reason: 'it belongs to no identity', code: 'CERTIFICATE_UNKNOWN' }
  }
  // A certificate that the network issued must chain to a CA of the network: another CA could issue
  // a certificate with the same names.
  // @guard certificate-of-a-ca--network
  if (authenticator.isIssuedByNetwork && ca !== null) {
    const reason = 'it was issued by the network and chains to another CA'
    return { reason, code: 'CERTIFICATE_UNTRUSTED' }
  }
  const identity = state.get('identity', authenticator.identityId)
  if (identity === undefined)
    return { reason: 'its identity was deleted', code: 'IDENTITY_UNKNOWN' }
  return { ...common, identity, authenticator, externalId: '' }
}

/**
 * The external id that a CA's claim selects in a certificate, or the reason why the claim selects
 * none; null: the CA has no claim.
 */
export function externalIdFromClaim(
  { externalIdClaim }: Pick<Ca, 'externalIdClaim'>,
  leaf: Certificate,
): ExternalId | null {
  const claim = externalIdClaim
  return claim === null ? null : findExternalId(claim, leaf)
}

/** Compares the whole certificate, because SHA-1 fingerprints can collide. */
export function matchesRecordedCertificate(leaf: Certificate, certPem: string | null): boolean {
  const recorded = firstPemCertificate(certPem)
  return recorded !== null && Buffer.compare(recorded, leaf.der) === 0
}

type NetworkQuestion = Omit<ClientChainInput, 'anchors' | 'nowMs'>
type NetworkChain =
  | (Extract<ClientChainResult, { ok: true }> & { readonly hasImproperChain: boolean })
  | Extract<ClientChainResult, { ok: false }>

/**
 * Verifies that the chain ends at a root of the network or, if that fails, at any CA certificate of
 * the network that this controller knows.
 */
export function buildNetworkChain(deps: TrustDeps, question: NetworkQuestion): NetworkChain {
  const authorities = networkAuthorities(deps)
  const roots = authorities.filter(isSelfIssued)
  const proper = verifyChainToAnchors(deps, roots, question)
  if (proper.ok) return { ...proper, hasImproperChain: false }
  const found = verifyChainToAnchors(deps, authorities, question)
  return found.ok ? { ...found, hasImproperChain: true } : found
}

/** Verifies a client's chain up to one of the anchors, with the limits for clients. */
export function verifyChainToAnchors(
  { clock }: Pick<TrustDeps, 'clock'>,
  anchors: readonly Certificate[],
  question: NetworkQuestion,
): ClientChainResult {
  return verifyClientChain({ ...question, anchors, nowMs: clock.nowMs() })
}

/** The router that was accepted, or the reason for a refusal, which is only for logs. */
type RouterVerification =
  | { readonly ok: true; readonly router: Router }
  | { readonly ok: false; readonly reason: string }

/**
 * Finds the router that owns the leaf certificate (index 0). Checks that the leaf equals the
 * certificate in the router's record, that the router is enrolled and enabled, that this network
 * issued the leaf, and that the leaf is within its validity period. The other certificates of the
 * chain do not prove possession of the key.
 */
export function verifyRouterCertificate(
  deps: TrustDeps,
  chain: PresentedCertificates,
): RouterVerification {
  const [leaf] = chain
  const router = deps.state.find('router', 'fingerprint', leaf.sha1)
  // @guard fingerprint-collision--router
  if (router === undefined || !matchesRecordedCertificate(leaf, router.certPem)) {
    return { ok: false, reason: 'the certificate belongs to no router' }
  }
  const reason = routerRefusalReason(deps, router, chain)
  return reason === null ? { ok: true, router } : { ok: false, reason }
}

/**
 * Reason why a router may not connect although the leaf is its certificate; null if it may connect.
 */
export function routerRefusalReason(
  deps: TrustDeps,
  router: Router,
  chain: PresentedCertificates,
): string | null {
  if (!router.isVerified) return 'the router is not enrolled'
  if (router.disabled) return 'the router is disabled'
  const question = { chain, requiresClientAuth: true, leafTime: 'enforced' } as const
  const found = buildNetworkChain(deps, question)
  // @guard router-extension--chain
  return found.ok ? null : found.reason
}

/** The router that `verifyRouterCertificate` accepts; null otherwise. */
export function findAcceptedRouter(deps: TrustDeps, chain: PresentedCertificates): Router | null {
  const verified = verifyRouterCertificate(deps, chain)
  return verified.ok ? verified.router : null
}
