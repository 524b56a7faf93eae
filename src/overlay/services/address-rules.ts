import { BlockList, isIP } from 'node:net'

import { type IpAddress, parseIp } from '../../lib/text/ip-address.ts'
import { parseCidr } from '../../lib/text/networks.ts'

/** Rule that allows a name. Names that an operator listed literally are trusted more. */
export type NameRule = 'exact' | 'wildcard'

const NAME =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/

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
