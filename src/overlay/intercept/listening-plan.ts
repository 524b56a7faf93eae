import { interceptLimits } from './limits.ts'
import type { TunnelProtocol } from '../services/host-config.ts'
import type { InterceptedService } from './intercept-table.ts'
import { chooseListeningMode } from '../../lib/intercept/intercept-target.ts'
import { interceptTargetLimits } from '../../lib/intercept/limits.ts'
import type { PortRange } from '../services/service-config-reader.ts'
import type { IpAddress } from '../../lib/text/ip-address.ts'
import {
  type IpNetwork,
  addressAt,
  networkSize,
  formatIpNetwork,
  singleAddressNetwork,
} from '../../lib/text/networks.ts'

/** A listening port, on one address or on all. */
export interface ListeningPort {
  readonly protocol: TunnelProtocol
  readonly family: IpAddress['family']
  /** Address of this host; null: all addresses. */
  readonly address: string | null
  readonly port: number
}

/**
 * Destination ports of one IPv4 address that a rule of the host redirects to one listening port.
 */
export interface RedirectedPorts {
  readonly protocol: TunnelProtocol
  readonly address: IpAddress
  readonly ranges: readonly PortRange[]
}

const { interceptListenersPerServiceMax: perServiceMax } = interceptTargetLimits
const {
  interceptListenersMax: listenersMax,
  redirectedAddressesMax,
  redirectedRangesMax,
} = interceptLimits

export function listeningPortKey({ protocol, family, address, port }: ListeningPort): string {
  return `${protocol} ${address ?? `any ${family}`} ${port}`
}

/** Ports of a network that a service needs for one protocol. */
interface Asked {
  readonly network: IpNetwork
  /** False if the address already leads to this host, as the addresses of names do. */
  readonly needsRoute: boolean
  readonly protocol: TunnelProtocol
  readonly range: PortRange
}

/** Ports and networks of one service, before the plan accepts them. */
interface Draft {
  readonly places: ListeningPort[]
  readonly redirected: (Omit<RedirectedPorts, 'ranges'> & { readonly range: PortRange })[]
  readonly networks: IpNetwork[]
  isAny: boolean
}

/**
 * The result for one service: whether the plan contains any part of it, and why it omits others.
 */
export interface ListeningPlanResult {
  readonly isAny: boolean
  readonly faults: readonly string[]
}

/**
 * Plans listening ports for services, and the networks that must be routed to this host for them.
 * Each address gets its own ports. A larger network shares one port on all addresses, which other
 * programs of this host then cannot use. UDP does not permit that, because Node.js does not report
 * the destination address of a datagram. Port ranges with more ports than a service may open are
 * redirected, one listening port for each address.
 */
export class ListeningPlan {
  readonly #redirectFault: string | null
  readonly #places = new Map<string, ListeningPort>()
  readonly #redirected = new Map<string, RedirectedPorts>()
  readonly #networks = new Map<string, IpNetwork>()
  #redirectedRanges = 0

  /** @param redirectFault why this host cannot redirect ports; null if it can. */
  constructor(redirectFault: string | null) {
    this.#redirectFault = redirectFault
  }

  /** The planned ports, without those that a planned port on all addresses includes. */
  get places(): ReadonlyMap<string, ListeningPort> {
    const left = new Map(this.#places)
    for (const [key, place] of this.#places) {
      if (place.address === null) continue
      if (left.has(listeningPortKey({ ...place, address: null }))) left.delete(key)
    }
    return left
  }

  get redirected(): ReadonlyMap<string, RedirectedPorts> {
    return this.#redirected
  }

  get networks(): readonly IpNetwork[] {
    return [...this.#networks.values()]
  }

  /**
   * Adds the parts of a service that can be planned.
   * @param networks the networks that the service intercepts.
   * @param named the addresses of the service's names.
   */
  add(
    { terms }: InterceptedService,
    networks: readonly IpNetwork[],
    named: readonly IpAddress[],
  ): ListeningPlanResult {
    const draft: Draft = { places: [], redirected: [], networks: [], isAny: false }
    const all = [
      ...named.map((address) => ({ network: singleAddressNetwork(address), needsRoute: false })),
      ...networks.map((network) => ({ network, needsRoute: true })),
    ]
    const faults = new Set<string>()
    for (const range of terms.ports) {
      for (const protocol of terms.protocols) {
        for (const each of all) {
          const fault = this.#draft(draft, { ...each, protocol, range })
          if (fault !== null) faults.add(fault)
        }
      }
    }
    for (const place of draft.places) this.#places.set(listeningPortKey(place), place)
    for (const place of draft.redirected) this.#redirect(place)
    for (const network of draft.networks) {
      this.#networks.set(`${network.address.text}/${network.prefix}`, network)
    }
    return { isAny: draft.isAny, faults: [...faults] }
  }

  #draft(draft: Draft, { network, needsRoute, protocol, range }: Asked): string | null {
    const ports = range.high - range.low + 1
    const found = chooseListeningMode(network, protocol, ports, perServiceMax - draft.places.length)
    if ('fault' in found) return found.fault
    if (found.way === 'redirected') {
      const addresses = addressesOf(network)
      const fault = this.#redirectFault ?? this.#redirectedFault(draft, addresses.length)
      if (fault !== null) return `${formatIpNetwork(network)}: ${fault}`
      for (const address of addresses) draft.redirected.push({ protocol, address, range })
      draft.isAny = true
      if (needsRoute) draft.networks.push(network)
      return null
    }
    const each = found.way === 'each' ? addressesOf(network) : [network]
    const places = each.flatMap((at) => placesAt(at, protocol, range))
    const added = [...draft.places, ...places].filter(
      (place) => !this.#places.has(listeningPortKey(place)),
    )
    if (this.#places.size + added.length > listenersMax) return full
    draft.places.push(...places)
    // Only IPv6 addresses are assigned to this host, because a program can listen on an IPv6
    // address only if it is assigned.
    const isAssigned = found.way === 'each' && network.address.family === 'ipv6'
    const assigned = isAssigned ? addressesOf(network).map(singleAddressNetwork) : []
    if (needsRoute) draft.networks.push(...assigned, network)
    draft.isAny = true
    return null
  }

  #redirectedFault({ redirected }: Draft, count: number): string | null {
    const addresses = this.#redirected.size + redirected.length + count
    const ranges = this.#redirectedRanges + redirected.length + count
    return addresses > redirectedAddressesMax || ranges > redirectedRangesMax
      ? `port ranges of ${redirectedAddressesMax} addresses are redirected already`
      : null
  }

  #redirect({ protocol, address, range }: Draft['redirected'][number]): void {
    const key = `${protocol} ${address.text}`
    const ranges = this.#redirected.get(key)?.ranges ?? []
    if (ranges.some(({ low, high }) => low <= range.low && range.high <= high)) return
    this.#redirected.set(key, { protocol, address, ranges: [...ranges, range] })
    this.#redirectedRanges += 1
  }
}

const full = `${listenersMax} ports are listened on for services already`

function addressesOf(network: IpNetwork): readonly IpAddress[] {
  return Array.from({ length: networkSize(network) }, (_, at) => addressAt(network, at)).flatMap(
    (address) => address ?? [],
  )
}

/** @param at an address; or a network, whose ports are planned on all addresses. */
function placesAt(
  at: IpAddress | IpNetwork,
  protocol: TunnelProtocol,
  { low, high }: PortRange,
): readonly ListeningPort[] {
  const { family } = 'family' in at ? at : at.address
  const address = 'family' in at ? at.text : null
  return Array.from({ length: high - low + 1 }, (_, offset) => ({
    protocol,
    family,
    address,
    port: low + offset,
  }))
}
