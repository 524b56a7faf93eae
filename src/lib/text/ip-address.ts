import { isIP } from 'node:net'

/** A normalized IP address; an IPv4-mapped IPv6 address becomes an IPv4 address. */
export interface IpAddress {
  readonly text: string
  readonly family: 'ipv4' | 'ipv6'
}

const MAPPED = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/

/**
 * Parses an IP address; null when the string is none. Addresses with a zone id are rejected,
 * because a zone id names an interface of this host.
 */
export function parseIp(text: string): IpAddress | null {
  if (text.includes('%')) return null
  const version = isIP(text)
  if (version === 0) return null
  if (version === 4) return { text, family: 'ipv4' }
  const normal = normalIpv6(text)
  const [, high, low] = MAPPED.exec(normal) ?? []
  if (high === undefined || low === undefined) return { text: normal, family: 'ipv6' }
  return {
    text: ipv4FromGroups(Number.parseInt(high, 16), Number.parseInt(low, 16)),
    family: 'ipv4',
  }
}

/**
 * Uses the URL parser, which converts every notation to the one in RFC 5952, without dotted IPv4
 * parts.
 */
function normalIpv6(text: string): string {
  return new URL(`http://[${text}]/`).hostname.slice(1, -1)
}

/** The eight 16-bit groups of an IPv6 address. */
export function ipv6Groups(text: string): number[] {
  const [head = '', tail = ''] = normalIpv6(text).split('::')
  const [first, last] = [head, tail].map((part) => (part === '' ? [] : part.split(':')))
  const given = [...(first ?? []), ...(last ?? [])].map((group) => Number.parseInt(group, 16))
  return given.toSpliced(first?.length ?? 0, 0, ...Array<number>(8 - given.length).fill(0))
}

/** The IPv4 address that two 16-bit groups of an IPv6 address contain. */
export function ipv4FromGroups(high: number, low: number): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
