import { interceptLimits } from './limits.ts'
import type { TunnelProtocol } from '../services/host-config.ts'
import type { Intercept } from './intercept-table.ts'
import type { IpAddress } from '../../lib/text/ip-address.ts'
import {
  type Network,
  addressAt,
  isSingleAddress,
  networkSize,
  singleNetwork,
} from '../../lib/text/networks.ts'

/** A listening port, on one address or on all. */
export interface ListeningPlace {
  readonly protocol: TunnelProtocol
  readonly family: IpAddress['family']
  /** null: all addresses of this host. */
  readonly address: string | null
  readonly port: number
}

const {
  interceptNetworkAddressesMax: networkAddressesMax,
  interceptListenersPerServiceMax: perServiceMax,
  interceptListenersMax: listenersMax,
} = interceptLimits

export function placeKey({ protocol, family, address, port }: ListeningPlace): string {
  return `${protocol} ${address ?? `any ${family}`} ${port}`
}

/**
 * Plans listening ports for services, and the networks that must lead to this host for them. An
 * address gets ports of its own. A larger network shares one port on all addresses instead, which
 * other programs of this host cannot use then. UDP does not support that, because Node does not
 * report the destination address of a datagram.
 */
export class ListeningPlan {
  readonly #places = new Map<string, ListeningPlace>()
  readonly #networks = new Map<string, Network>()

  /** Ports without those that are covered by a port on all addresses. */
  get places(): ReadonlyMap<string, ListeningPlace> {
    const left = new Map(this.#places)
    for (const [key, place] of this.#places) {
      if (place.address === null) continue
      if (left.has(placeKey({ ...place, address: null }))) left.delete(key)
    }
    return left
  }

  get networks(): readonly Network[] {
    return [...this.#networks.values()]
  }

  /**
   * @param named addresses of the names of the service.
   * @returns why the service cannot be intercepted, or null. A service is either planned completely
   * or not at all.
   */
  add({ terms }: Intercept, named: readonly IpAddress[]): string | null {
    const places: ListeningPlace[] = []
    const networks: Network[] = []
    for (const { low, high } of terms.ports) {
      for (const protocol of terms.protocols) {
        const single = named.length + terms.networks.filter(isSingleAddress).length
        if ((high - low + 1) * Math.max(1, single) > perServiceMax) return tooMany
        for (const address of named) places.push(...placesAt(address, protocol, low, high))
        for (const network of terms.networks) {
          const size = networkSize(network)
          const isEach = size <= networkAddressesMax && size * (high - low + 1) <= perServiceMax
          if (!isEach && protocol === 'udp') return noDatagrams
          if (isEach) {
            const each = addressesOf(network)
            for (const address of each) places.push(...placesAt(address, protocol, low, high))
            networks.push(...(network.address.family === 'ipv6' ? each.map(singleNetwork) : []))
          } else places.push(...placesAt(network, protocol, low, high))
          networks.push(network)
        }
        if (places.length > perServiceMax) return tooMany
      }
    }
    const added = places.filter((place) => !this.#places.has(placeKey(place)))
    if (this.#places.size + added.length > listenersMax) return full
    for (const place of added) this.#places.set(placeKey(place), place)
    for (const network of networks) {
      this.#networks.set(`${network.address.text}/${network.prefix}`, network)
    }
    return null
  }
}

// @guard addresses-a-service-takes--ports
const tooMany = `its ports and addresses need more than ${perServiceMax} ports to listen on`
const full = `${listenersMax} ports are listened on for services already`
const noDatagrams = `a network of more than ${networkAddressesMax} addresses is intercepted for tcp alone`

function addressesOf(network: Network): readonly IpAddress[] {
  return Array.from({ length: networkSize(network) }, (_, at) => addressAt(network, at)).flatMap(
    (address) => address ?? [],
  )
}

/** @param at a network stands for all addresses. */
function placesAt(
  at: IpAddress | Network,
  protocol: TunnelProtocol,
  low: number,
  high: number,
): readonly ListeningPlace[] {
  const { family } = 'family' in at ? at : at.address
  const address = 'family' in at ? at.text : null
  return Array.from({ length: high - low + 1 }, (_, offset) => ({
    protocol,
    family,
    address,
    port: low + offset,
  }))
}
