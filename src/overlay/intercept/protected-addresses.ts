import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'

import { KeyedTasks } from '../../lib/keyed-tasks.ts'
import { interceptNetworkFault } from '../../lib/intercept/intercept-target.ts'
import { parseDnsName } from '../../lib/text/host-name.ts'
import { type IpAddress, parseIp } from '../../lib/text/ip-address.ts'
import {
  type IpNetwork,
  parseCidr,
  networkContains,
  formatIpNetwork,
} from '../../lib/text/networks.ts'

interface ProtectedAddressesDeps {
  /** Hosts that the router or tunnel must reach: controllers, other routers, name servers. */
  readonly hosts: () => readonly string[]
  /** Hosts that this system must reach: its gateways and name servers. */
  readonly systemHosts: () => Promise<readonly string[]>
  /** Whether this host has the address only because a service is intercepted at it. */
  readonly isForServices: (address: string) => boolean
  /** Called when a name resolves to other addresses than in the previous lookup. */
  readonly onResolved: () => void
}

/** Names that always resolve to the host itself (RFC 6761). */
const LOCAL_NAMES = ['localhost']
const REVERSE_DOMAINS = ['in-addr.arpa', 'ip6.arpa']
/** Concurrent lookups; only one, because lookups use threads that file access also needs. */
const LOOKUPS_AT_ONCE = 1

/**
 * Addresses and names that are never intercepted on this host: its own, and those of hosts that it
 * must reach. A network that contains one of these addresses is not intercepted either.
 * Intercepting them would disconnect the router or tunnel, or send traffic that is meant for
 * another host to a service.
 */
export class ProtectedAddresses {
  readonly #deps: ProtectedAddressesDeps
  readonly #lookups = new KeyedTasks(LOOKUPS_AT_ONCE)
  #systemHosts: readonly string[] = []
  #own: readonly IpAddress[] = []
  #hosts: readonly IpAddress[] = []
  #names: ReadonlySet<string> = new Set(LOCAL_NAMES)
  /** Addresses of names from the latest lookups. */
  readonly #resolved = new Map<string, readonly IpAddress[]>()
  readonly #resolving = new Set<string>()

  constructor(deps: ProtectedAddressesDeps) {
    this.#deps = deps
  }

  /** Determines again which hosts this system must reach. */
  async refresh(): Promise<void> {
    this.#systemHosts = await this.#deps.systemHosts()
    this.look()
  }

  /**
   * Updates the protected addresses from those that are known, without waiting; resolves names in
   * the background.
   */
  look(): void {
    const { hosts: hostsOf, isForServices } = this.#deps
    this.#own = hostAddresses().filter(({ text }) => !isForServices(text))
    const hosts = [...hostsOf(), ...this.#systemHosts]
    const names = new Set(hosts.flatMap((host) => parseDnsName(host) ?? []))
    this.#names = new Set([...LOCAL_NAMES, ...names])
    for (const name of names) void this.#resolve(name)
    for (const name of this.#resolved.keys()) if (!names.has(name)) this.#resolved.delete(name)
    this.#hosts = [
      ...hosts.flatMap((host) => parseIp(host) ?? []),
      ...[...this.#resolved.values()].flat(),
    ]
  }

  /** Why a service must not intercept the network; null if it may. */
  faultOf(network: IpNetwork): string | null {
    const fault = interceptNetworkFault(network)
    if (fault !== null) return fault
    const text = formatIpNetwork(network)
    const own = this.#own.find((address) => networkContains(network, address))
    // @guard addresses-a-service-takes--own
    if (own !== undefined) return `${text} contains ${own.text}, an address of this host`
    const host = this.#hosts.find((address) => networkContains(network, address))
    // @guard addresses-a-service-takes--needed
    if (host !== undefined) {
      return `${text} contains ${host.text}, the address of a controller, a router, a gateway or a name server that this host needs`
    }
    return null
  }

  /** @param name a result of `parseDnsName`. */
  hasName(name: string): boolean {
    // @guard addresses-a-service-takes--names
    return (
      this.#names.has(name) ||
      [...LOCAL_NAMES, ...REVERSE_DOMAINS].some((domain) => name.endsWith(`.${domain}`))
    )
  }

  async #resolve(name: string): Promise<void> {
    if (this.#resolving.has(name)) return
    this.#resolving.add(name)
    try {
      const found = await this.#lookups.run('', () => lookup(name, { all: true }))
      const before = this.#resolved.get(name) ?? []
      const addresses = found.flatMap(({ address }) => parseIp(address) ?? [])
      const isOther = textsOf(addresses).join() !== textsOf(before).join()
      this.#resolved.set(name, addresses)
      if (isOther) this.#deps.onResolved()
    } catch {
      // If a lookup fails, the previous addresses stay protected.
    } finally {
      this.#resolving.delete(name)
    }
  }
}

function textsOf(addresses: readonly IpAddress[]): readonly string[] {
  return addresses.map(({ text }) => text).sort()
}

export function hostAddresses(): readonly IpAddress[] {
  return Object.values(networkInterfaces())
    .flatMap((found) => found ?? [])
    .flatMap(({ address }) => parseIp(address) ?? [])
}

/** @param names names of interfaces. */
export function interfaceNetworks(names: readonly string[]): readonly IpNetwork[] {
  return names
    .flatMap((name) => networkInterfaces()[name] ?? [])
    .flatMap(({ cidr }) => (cidr === null ? [] : (parseCidr(cidr) ?? [])))
}
