/**
 * SPIFFE ids (SPIFFE-ID specification, section 2). Parsing is strict: no percent escapes, ports, queries or dot
 * segments, so that two different texts never name one workload.
 */
export const SPIFFE_ID_BYTES_MAX = 2048

export interface SpiffeId {
  readonly trustDomain: string
  /** Starts with a slash; never empty here, as every id of ours names something. */
  readonly path: string
}

const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/
const PATH = /^(?:\/[A-Za-z0-9._-]+)+$/
const CONTROLLER_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export function isTrustDomain(text: string): boolean {
  return TRUST_DOMAIN.test(text)
}

/** 1 to 64 letters, digits, `.`, `_`, `-`, the first a letter or digit: safe in a path, a file name and a SPIFFE id. */
export function isControllerId(text: string): boolean {
  return CONTROLLER_ID.test(text)
}

/** @returns null when the text is no SPIFFE id with a path. */
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

/** @returns the controller's id, or null when this is another trust domain, or another kind of path. */
export function controllerIdOf(spiffeId: SpiffeId, trustDomain: string): string | null {
  const prefix = '/controller/'
  if (spiffeId.trustDomain !== trustDomain || !spiffeId.path.startsWith(prefix)) return null
  const id = spiffeId.path.slice(prefix.length)
  return isControllerId(id) ? id : null
}
