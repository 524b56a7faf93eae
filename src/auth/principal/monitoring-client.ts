import { CertificateError, checkCertificateChain } from '../../pki/certificate.ts'
import { hasExternalSpiffeId } from '../../pki/spiffe.ts'
import type { CallerCredentials } from './credentials.ts'
import type { PresentedCertificates } from '../../pki/verify/client-chain.ts'
import { networkAuthorities } from '../certificates/trusted-authorities.ts'
import type { NetworkAuthorities } from '../certificates/network-authorities.ts'
import type { Clock } from '../../lib/clock.ts'

interface MonitorDeps {
  readonly authorities: NetworkAuthorities
  readonly clock: Clock
}

const CLIENT_AUTHENTICATION = '1.3.6.1.5.5.7.3.2'

/**
 * Whether the peer presented a certificate from `flotilla pki issue` that permits reading
 * monitoring data. The TLS handshake proves possession of the key; everything else is checked here,
 * on each request.
 */
export function isMonitoringClient(
  deps: MonitorDeps,
  { peerChain }: Pick<CallerCredentials, 'peerChain'>,
): boolean {
  const chain = peerChain()
  if (chain === null) return false
  try {
    return hasMonitorCertificate(deps, chain)
  } catch (error) {
    if (error instanceof CertificateError) return false
    throw error
  }
}

/**
 * The presented intermediates count too: after a replacement of the issuing authority, they connect
 * an earlier certificate to the root.
 * @throws {CertificateError} when the network did not issue the certificate, or the certificate has
 * expired.
 */
function hasMonitorCertificate(deps: MonitorDeps, chain: PresentedCertificates): boolean {
  // @guard certificate-of-the-web-authority--metrics, metrics-by-certificate--chain
  checkCertificateChain(chain, networkAuthorities(deps), deps.clock.nowMs())
  const [leaf] = chain
  const isForClients = leaf.native.keyUsage?.includes(CLIENT_AUTHENTICATION) === true
  // Controllers and identities have certificates of the same authority, but must not count as
  // monitoring systems.
  // @guard metrics-by-certificate--kind, metrics-by-certificate--usage
  return isForClients && hasExternalSpiffeId(leaf.uris)
}
