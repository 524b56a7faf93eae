import { isControllerId, isTrustDomain } from '../lib/text/names.ts'

/** Maximum length of a SPIFFE id (SPIFFE-ID specification, section 2). */
const SPIFFE_ID_BYTES_MAX = 2048

export interface SpiffeId {
  readonly trustDomain: string
  /**
   * Path of the id, starting with a slash; never empty, because all SPIFFE ids of Flotilla have a
   * path.
   */
  readonly path: string
}

const PATH = /^(?:\/[A-Za-z0-9._-]+)+$/
/**
 * Parses a SPIFFE id strictly: without percent escapes, ports, queries or dot segments, so that two
 * different strings never identify the same workload. Null for any other string, and for an id
 * without a path.
 */
export function parseSpiffeId(text: string): SpiffeId | null {
  if (text.length > SPIFFE_ID_BYTES_MAX) return null
  const scheme = 'spiffe://'
  if (!text.startsWith(scheme)) return null
  const slash = text.indexOf('/', scheme.length)
  if (slash < 0) return null
  const trustDomain = text.slice(scheme.length, slash)
  const path = text.slice(slash)
  if (!isTrustDomain(trustDomain) || !PATH.test(path)) return null
  if (path.split('/').some((segment) => segment === '.' || segment === '..')) return null
  return { trustDomain, path }
}

export function controllerSpiffeId(trustDomain: string, controllerId: string): string {
  return `spiffe://${trustDomain}/controller/${controllerId}`
}

export function identitySpiffeId(trustDomain: string, identityId: string): string {
  return `spiffe://${trustDomain}/identity/${identityId}`
}

/** SPIFFE id in the certificate of one API session of an identity. */
export function sessionSpiffeId(
  trustDomain: string,
  ids: {
    readonly identityId: string
    readonly apiSessionId: string
    readonly certificateId: string
  },
): string {
  return `${identitySpiffeId(trustDomain, ids.identityId)}/apiSession/${ids.apiSessionId}/apiSessionCertificate/${ids.certificateId}`
}

/**
 * The ids of identity and API session that the SPIFFE id of a session certificate contains; null
 * for any other SPIFFE id, and for another trust domain.
 */
export function sessionCertificateIds(
  { trustDomain, path }: SpiffeId,
  expectedDomain: string,
): { readonly identityId: string; readonly apiSessionId: string } | null {
  const found = SESSION_PATH.exec(path)
  // @guard client-with-a-stolen-token--domain
  if (found === null || trustDomain !== expectedDomain) return null
  const [, identityId = '', apiSessionId = ''] = found
  return { identityId, apiSessionId }
}

const SESSION_PATH = /^\/identity\/([^/]+)\/apiSession\/([^/]+)\/apiSessionCertificate\/[^/]+$/

export function routerSpiffeId(trustDomain: string, routerId: string): string {
  return `spiffe://${trustDomain}/router/${routerId}`
}

/**
 * @returns the id of a router in any trust domain, or null when the path does not identify a
 * router.
 */
export function routerIdFromSpiffe({ path }: SpiffeId): string | null {
  const prefix = '/router/'
  const id = path.slice(prefix.length)
  return path.startsWith(prefix) && !id.includes('/') ? id : null
}

/**
 * @returns the controller's id, or null for another trust domain or when the path does not identify
 * a controller.
 */
export function controllerIdFromSpiffe(spiffeId: SpiffeId, trustDomain: string): string | null {
  const prefix = '/controller/'
  if (spiffeId.trustDomain !== trustDomain || !spiffeId.path.startsWith(prefix)) return null
  const id = spiffeId.path.slice(prefix.length)
  return isControllerId(id) ? id : null
}

/**
 * SPIFFE id in the certificate of a program outside the cluster, which is neither a controller nor
 * an identity.
 */
export function externalSpiffeId(trustDomain: string): string {
  return `spiffe://${trustDomain}${EXTERNAL_PATH}`
}

const EXTERNAL_PATH = '/external'

/**
 * Whether the certificate with these URIs comes from `flotilla pki issue`, which issues
 * certificates for programs outside the cluster.
 */
export function hasExternalSpiffeId(uris: readonly string[]): boolean {
  return uris.length === 1 && parseSpiffeId(uris[0] ?? '')?.path === EXTERNAL_PATH
}
