/** Syntax of names that configuration, certificates and the cluster use. */

const CONTROLLER_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/

/**
 * 1 to 64 letters, digits, `.`, `_`, `-`, starting with a letter or digit: safe in a path, a file
 * name and a SPIFFE id.
 */
export function isControllerId(text: string): boolean {
  return CONTROLLER_ID.test(text)
}

/** Whether the text is a trust domain, as the SPIFFE-ID specification, section 2.1, defines it. */
export function isTrustDomain(text: string): boolean {
  return TRUST_DOMAIN.test(text)
}

export interface HostPort {
  /** A DNS name or an IP address; an IPv6 address is without brackets. */
  readonly host: string
  readonly port: number
}

const HOST_PORT =
  /^(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}))):([0-9]{1,5})$/

/**
 * Parses `host:port`, with IPv6 addresses in brackets and ports from 1 to 65535.
 * @returns null when the string is invalid.
 */
export function parseHostPort(text: string): HostPort | null {
  const match = HOST_PORT.exec(text)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  if (host === undefined || port < 1 || port > 65535) return null
  return { host, port }
}

/** Formats `host:port`, with brackets around an IPv6 address. */
export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
