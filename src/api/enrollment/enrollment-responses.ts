import { networkAuthorities } from '../../auth/certificates/trusted-authorities.ts'
import type { RequestContext } from '../http/request-context.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import { controllersForClients } from '../cluster/controller-view.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'

interface AuthoritiesPemDeps {
  readonly cluster: ClusterView
  readonly authorities: NetworkAuthorities
}

/**
 * All CA certificates of the network as one PEM text; an enrolled client trusts these certificates.
 */
export function networkAuthoritiesPem(deps: Pick<AuthoritiesPemDeps, 'authorities'>): string {
  return networkAuthorities(deps)
    .map(({ pem }) => pem.trim())
    .join('\n')
    .concat('\n')
}

/** Response with certificates, with the fields that OpenZiti routers read. */
export function issuedCertificatesResponse(
  deps: Pick<AuthoritiesPemDeps, 'authorities'>,
  issued: { readonly cert: string; readonly serverCert: string; readonly name?: string },
): Reply {
  return detailResponse({ ca: networkAuthoritiesPem(deps), ...issued })
}

/**
 * Response for an identity that has enrolled. The response lists the controllers, because OpenZiti
 * clients store them with the credential.
 */
export function enrolledIdentityResponse(
  deps: Pick<AuthoritiesPemDeps, 'cluster'>,
  data: Readonly<Record<string, string>> = {},
): Reply {
  return detailResponse({ ...data, controllers: controllersForClients(deps.cluster) })
}

/**
 * Excludes the request from deduplication by request id, because every execution issues a new
 * certificate. If a repeated request got the outcome of the first request, its response would
 * contain another certificate than the stored one.
 */
export function skipRequestDeduplication(call: RequestContext): void {
  call.metadata.isRepeatable = false
}
