import { BlockList } from 'node:net'

import { type IpAddress, parseIp } from '../../lib/text/ip-address.ts'
import { parseDnsName } from '../../lib/text/host-name.ts'
import { parseCidr } from '../../lib/text/networks.ts'

/**
 * Rule that permits a name. Names without wildcard are trusted more, because the operator listed
 * each one.
 */
type NameRule = 'exact' | 'wildcard'

/**
 * Whether this is the unspecified address (all zeros); a connection to it reaches the host itself.
 */
export function isUnspecifiedAddress({ text }: IpAddress): boolean {
  return text === '0.0.0.0' || text === '::'
}

/** Addresses and names that clients of a service may request. */
export class AddressRules {
  readonly #addresses = new BlockList()
  readonly #names = new Set<string>()
  readonly #domains: string[] = []
  #hasAnyName = false

  /**
   * @param allowed list of addresses, `address/prefix`, names, `*.domain`, or `*` for every name.
   */
  constructor(allowed: readonly string[]) {
    for (const text of allowed) this.#add(text)
  }

  allowsAddress({ text, family }: IpAddress): boolean {
    return this.#addresses.check(text, family)
  }

  /**
   * @param name a result of `parseDnsName`.
   * @returns null if no rule permits the name.
   */
  ruleFor(name: string): NameRule | null {
    if (this.#names.has(name)) return 'exact'
    const isInDomain = this.#domains.some(
      (domain) => name === domain || name.endsWith(`.${domain}`),
    )
    return this.#hasAnyName || isInDomain ? 'wildcard' : null
  }

  /** Adds a rule for an address or name. An invalid text permits nothing. */
  #add(text: string): void {
    if (text === '*') {
      this.#hasAnyName = true
      return
    }
    const domain = text.startsWith('*.') ? parseDnsName(text.slice(2)) : null
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
    const name = parseDnsName(text)
    if (name !== null) this.#names.add(name)
  }
}
