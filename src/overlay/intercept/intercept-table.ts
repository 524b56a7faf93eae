import type { TunnelProtocol } from '../services/host-config.ts'
import type { InterceptConfig } from './intercept-config.ts'
import type { IpAddress } from '../../lib/text/ip-address.ts'
import { networkContains } from '../../lib/text/networks.ts'

/** A service for which a tunnel intercepts connections. */
export interface InterceptedService {
  readonly serviceId: string
  readonly service: string
  readonly terms: InterceptConfig
}

/** The destination that a client connects to. */
export interface InterceptedDestination {
  readonly protocol: TunnelProtocol
  readonly address: IpAddress
  /**
   * Service name to which the tunnel has assigned this address; null if the client did not use a
   * service name.
   */
  readonly hostname: string | null
  readonly port: number
}

/** Rank of a match. Of two ranks, the first elements that differ decide; the larger one wins. */
type Exactness = readonly [isExact: number, length: number, narrowness: number]

/**
 * Finds the service for a destination. The most specific match wins, as in OpenZiti: a name wins
 * over a domain, then the longer domain or prefix, then the narrower port range, then the smaller
 * ID.
 */
export class InterceptTable {
  readonly #intercepts: readonly InterceptedService[]

  constructor(intercepts: readonly InterceptedService[]) {
    this.#intercepts = intercepts.toSorted((one, other) =>
      one.serviceId < other.serviceId ? -1 : 1,
    )
  }

  get intercepts(): readonly InterceptedService[] {
    return this.#intercepts
  }

  find(place: InterceptedDestination): InterceptedService | null {
    let found: { readonly intercept: InterceptedService; readonly exactness: Exactness } | null =
      null
    for (const intercept of this.#intercepts) {
      const exactness = exactnessOf(intercept.terms, place)
      if (exactness === null) continue
      if (found === null || isMore(exactness, found.exactness)) found = { intercept, exactness }
    }
    return found?.intercept ?? null
  }

  /**
   * Services that match a name, regardless of the port.
   * @param name a result of `parseDnsName`.
   */
  claimsOn(name: string): readonly InterceptedService[] {
    return this.#intercepts.filter(({ terms }) => nameExactness(terms, name) !== null)
  }
}

function exactnessOf(
  terms: InterceptConfig,
  { protocol, address, hostname, port }: InterceptedDestination,
): Exactness | null {
  if (!terms.protocols.has(protocol)) return null
  const widths = terms.ports
    .filter(({ low, high }) => port >= low && port <= high)
    .map(({ low, high }) => high - low)
  if (widths.length === 0) return null
  const [isExact, length] =
    (hostname === null ? addressExactness(terms, address) : nameExactness(terms, hostname)) ?? []
  if (isExact === undefined || length === undefined) return null
  return [isExact, length, -Math.min(...widths)]
}

function nameExactness(
  { names, domains }: InterceptConfig,
  name: string,
): readonly [number, number] | null {
  // @guard addresses-a-service-takes--exact
  if (names.has(name)) return [1, 0]
  const lengths = [...domains]
    .filter((domain) => name === domain || name.endsWith(`.${domain}`))
    .map(({ length }) => length)
  return lengths.length === 0 ? null : [0, Math.max(...lengths)]
}

function addressExactness(
  { networks }: InterceptConfig,
  address: IpAddress,
): readonly [number, number] | null {
  const prefixes = networks
    .filter((network) => networkContains(network, address))
    .map(({ prefix }) => prefix)
  return prefixes.length === 0 ? null : [0, Math.max(...prefixes)]
}

function isMore(one: Exactness, other: Exactness): boolean {
  for (const [at, figure] of one.entries()) {
    const than = other[at] ?? 0
    if (figure !== than) return figure > than
  }
  return false
}
