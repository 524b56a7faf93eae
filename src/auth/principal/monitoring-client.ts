import { type Certificate, CertificateError, checkCertificateChain } from '../../pki/certificate.ts'
import { hasExternalSpiffeId } from '../../pki/spiffe.ts'
import type { CallerCredentials } from './credentials.ts'
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
    return isMonitorCertificate(deps, chain[0])
  } catch (error) {
    if (error instanceof CertificateError) return false
    throw error
  }
}

/**
 * @throws {CertificateError} when the network did not issue the certificate, or the certificate has
 * expired.
 */
function isMonitorCertificate(deps: MonitorDeps, leaf: Certificate): boolean {
  // @guard certificate-of-the-web-authority--metrics, metrics-by-certificate--chain
  checkCertificateChain([leaf], networkAuthorities(deps), deps.clock.nowMs())
  const isForClients = leaf.native.keyUsage?.includes(CLIENT_AUTHENTICATION) === true
  // Controllers and identities have certificates of the same authority, but must not count as
  // monitoring systems.
  // @guard metrics-by-certificate--kind, metrics-by-certificate--usage
  return isForClients && hasExternalSpiffeId(leaf.uris)
}
