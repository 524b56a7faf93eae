import { BlockList, isIP } from 'node:net'

/** A normalized IP address; IPv4-mapped IPv6 addresses are IPv4 addresses. */
export interface IpAddress {
  readonly text: string
  readonly family: 'ipv4' | 'ipv6'
}

/** Rule that allows a name. Names that an operator listed literally are trusted more. */
export type NameRule = 'exact' | 'wildcard'

const CIDR = /^([^/]+)\/([0-9]{1,3})$/
const NAME =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/
const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0xffff]

/**
 * null when it is not an address. Zone ids are rejected, because they name interfaces of this host.
 */
export function parseIp(text: string): IpAddress | null {
  if (text.includes('%')) return null
  const version = isIP(text)
  if (version === 0) return null
  if (version === 4) return { text, family: 'ipv4' }
  const groups = groupsOf(text)
  const isMapped = MAPPED_PREFIX.every((group, at) => groups[at] === group)
  if (!isMapped) return { text: new URL(`http://[${text}]/`).hostname.slice(1, -1), family: 'ipv6' }
  const [high = 0, low = 0] = groups.slice(6)
  return { text: `${high >>> 8}.${high & 0xff}.${low >>> 8}.${low & 0xff}`, family: 'ipv4' }
}

/** The eight groups of an IPv6 address. */
export function groupsOf(text: string): number[] {
  // The URL parser converts every notation to that of RFC 5952.
  const normal = new URL(`http://[${text}]/`).hostname.slice(1, -1)
  const [head = '', tail] = normal.split('::')
  const read = (part: string) =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const [first, last] = [read(head), read(tail ?? '')]
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
}

/**
 * Normalized name, or null. A numeric last label is rejected: resolvers treat such names as
 * addresses in old notations (`127.1`, `0x7f000001`), which would bypass the address rules.
 */
export function parseName(text: string): string | null {
  const name = text.toLowerCase().replace(/\.$/, '')
  if (!NAME.test(name) || isIP(name) !== 0) return null
  const last = name.slice(name.lastIndexOf('.') + 1)
  // @guard targets-of-a-tunnel--forms
  return /^(?:[0-9]+|0x[0-9a-f]*)$/.test(last) ? null : name
}

const notRoutable = new BlockList()
for (const [address, prefix] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
  ['255.255.255.255', 32],
] as const) {
  notRoutable.addSubnet(address, prefix, 'ipv4')
}
for (const [address, prefix] of [
  ['::', 127],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  notRoutable.addSubnet(address, prefix, 'ipv6')
}

/** Whether the address is loopback, link-local, multicast, broadcast or unspecified. */
export function isLocal({ text, family }: IpAddress): boolean {
  return notRoutable.check(text, family)
}

/** Whether it is the unspecified address; connecting to it reaches the host itself. */
export function isUnspecified({ text }: IpAddress): boolean {
  return text === '0.0.0.0' || text === '::'
}

/** Addresses and names that clients of a service may request. */
export class AddressRules {
  readonly #addresses = new BlockList()
  readonly #names = new Set<string>()
  readonly #domains: string[] = []
  #hasAnyName = false

  /** @param allowed addresses, `address/prefix`, names, `*.domain`, `*`. */
  constructor(allowed: readonly string[]) {
    for (const text of allowed) this.#add(text)
  }

  allowsAddress({ text, family }: IpAddress): boolean {
    return this.#addresses.check(text, family)
  }

  /** @param name in the form of `parseName`. @returns null when it is not allowed. */
  ruleFor(name: string): NameRule | null {
    if (this.#names.has(name)) return 'exact'
    const isInDomain = this.#domains.some(
      (domain) => name === domain || name.endsWith(`.${domain}`),
    )
    return this.#hasAnyName || isInDomain ? 'wildcard' : null
  }

  /** An invalid text allows nothing. */
  #add(text: string): void {
    if (text === '*') {
      this.#hasAnyName = true
      return
    }
    const domain = text.startsWith('*.') ? parseName(text.slice(2)) : null
    if (domain !== null) {
      this.#domains.push(domain)
      return
    }
    const address = parseIp(text)
    if (address !== null) {
      this.#addresses.addAddress(address.text, address.family)
      return
    }
    const network = parseCidr(text)
    if (network !== null) {
      this.#addresses.addSubnet(network.address.text, network.prefix, network.address.family)
      return
    }
    const name = parseName(text)
    if (name !== null) this.#names.add(name)
  }
}

export interface Network {
  readonly address: IpAddress
  readonly prefix: number
}

/** @param text `address/prefix`. null when it is not a network. */
export function parseCidr(text: string): Network | null {
  const [, base = '', length = ''] = CIDR.exec(text) ?? []
  return isIP(base) === 0 ? null : networkOf(base, Number(length))
}

/** null when the network is invalid. */
export function networkOf(text: string, prefix: number): Network | null {
  const address = parseIp(text)
  if (address === null || !Number.isInteger(prefix) || prefix < 0) return null
  const isMapped = address.family === 'ipv4' && text.includes(':')
  // The prefix of an IPv4-mapped network counts from the IPv6 address.
  const own = isMapped ? prefix - 96 : prefix
  return own < 0 || own > (address.family === 'ipv4' ? 32 : 128) ? null : { address, prefix: own }
}

/**
 * Translates an address to another network by keeping its host bits; null when it is not in the
 * first network.
 */
export function translatedAddress(
  address: IpAddress,
  from: Network,
  to: Network,
): IpAddress | null {
  const { family } = address
  if (from.address.family !== family || to.address.family !== family) return null
  if (from.prefix !== to.prefix) return null
  const width = family === 'ipv4' ? 32n : 128n
  const rest = (1n << (width - BigInt(from.prefix))) - 1n
  const [own, source, target] = [
    addressValue(address),
    addressValue(from.address),
    addressValue(to.address),
  ]
  if ((own & ~rest) !== (source & ~rest)) return null
  return addressOfValue((target & ~rest) | (own & rest), family)
}

export function addressValue({ text, family }: IpAddress): bigint {
  if (family === 'ipv4') {
    return text.split('.').reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
  }
  return groupsOf(text).reduce((value, group) => (value << 16n) | BigInt(group), 0n)
}

export function addressOfValue(value: bigint, family: IpAddress['family']): IpAddress | null {
  if (family === 'ipv4') {
    return parseIp([24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('.'))
  }
  const groups = Array.from({ length: 8 }, (_, at) =>
    ((value >> BigInt(16 * (7 - at))) & 0xffffn).toString(16),
  )
  return parseIp(groups.join(':'))
}
