import { parseDnsName } from '../text/host-name.ts'
import { parseIp } from '../text/ip-address.ts'
import {
  addressAt,
  isLocalAddress,
  type IpNetwork,
  networkContains,
  networkSize,
  formatIpNetwork,
  parseCidr,
  singleAddressNetwork,
} from '../text/networks.ts'
import { interceptTargetLimits } from './limits.ts'

const {
  interceptPrefixBitsMin,
  interceptListenersPerServiceMax: listenersMax,
  interceptNetworkAddressesMax: eachMax,
  redirectedNetworkAddressesMax: redirectedMax,
  interceptRulesMax,
  interceptFaultsShownMax: shownMax,
} = interceptTargetLimits

const FAULT_LENGTH_MAX = 256

/** A target that a service intercepts. For `*.example`, the domain is stored as `example`. */
export type InterceptTarget =
  | { readonly type: 'network'; readonly network: IpNetwork }
  | { readonly type: 'name' | 'domain'; readonly name: string }

/**
 * Parses the text of an intercept target.
 * @param text an address, `address/prefix`, a name or `*.domain`; the result is null for any other
 * string.
 */
export function readInterceptTarget(text: string): InterceptTarget | null {
  const address = parseIp(text)
  const network = address === null ? parseCidr(text) : singleAddressNetwork(address)
  if (network !== null) return { type: 'network', network }
  const isDomain = text.startsWith('*.')
  const name = parseDnsName(isDomain ? text.slice(2) : text)
  return name === null ? null : { type: isDomain ? 'domain' : 'name', name }
}

export const interceptAddressFault = 'is no address, network, name or *.domain'
export const sourceAddressesFault = 'is not supported: clients of this host alone are served'

const localNetworks = ['127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', 'fe80::/10', 'ff00::/8']
  .flatMap((text) => parseCidr(text) ?? [])
  .map(({ address }) => address)

/** The reason why no host can intercept the network; null if some host may be able to. */
export function interceptNetworkFault(network: IpNetwork): string | null {
  const text = formatIpNetwork(network)
  // @guard addresses-a-service-takes--large
  if (network.prefix < interceptPrefixBitsMin) {
    return `${text} is larger than a network with a prefix of ${interceptPrefixBitsMin} bits`
  }
  const first = addressAt(network, 0)
  // @guard addresses-a-service-takes--local
  if (first === null || isLocalAddress(first) || takesLocal(network)) {
    return `${text} has addresses of this host, of its link, or of no single host`
  }
  return null
}

/**
 * Whether a network also includes addresses of this host or its links, although the network's first
 * address is not one of them.
 */
function takesLocal(network: IpNetwork): boolean {
  return localNetworks.some((address) => networkContains(network, address))
}

/** Ways in which a tunnel can listen for connections to one port range of a network. */
export type ListeningMode =
  /** Listens on a port at each address. */
  | 'each'
  /** Listens on one port at all addresses of the host. */
  | 'all'
  /**
   * Listens on one port for the whole range; a firewall rule of the host redirects the other ports
   * of the range to this port.
   */
  | 'redirected'

/**
 * @param portsLeft number of listening ports that the service may still use.
 * @returns the mode in which a tunnel listens, or the reason why no mode is possible.
 */
export function chooseListeningMode(
  network: IpNetwork,
  protocol: string,
  ports: number,
  portsLeft: number = listenersMax,
): { readonly way: ListeningMode } | { readonly fault: string } {
  const size = networkSize(network)
  if (size <= eachMax && size * ports <= portsLeft) return { way: 'each' }
  // @guard addresses-a-service-takes--ports
  if (size > eachMax && ports <= portsLeft) {
    if (protocol === 'tcp') return { way: 'all' }
    const fault = `${formatIpNetwork(network)}: a network of more than ${eachMax} addresses is intercepted for tcp alone`
    return { fault }
  }
  if (network.address.family === 'ipv4' && size <= redirectedMax) return { way: 'redirected' }
  const fault = `${formatIpNetwork(network)}: its ports and addresses need more than ${listenersMax} ports to listen on, which is possible for names and for networks of at most ${redirectedMax} IPv4 addresses alone`
  return { fault }
}

/**
 * The reasons why no Flotilla tunnel can intercept parts of a config's data, each as a clause of a
 * sentence; if there are many, only the first. Ignores parts that do not match the schema of the
 * config type.
 */
export function interceptFaults(typeName: string, data: unknown): readonly string[] {
  const faults = [...new Set(allFaults(typeName, data))]
  const first = faults.slice(0, shownMax).map((fault) => fault.slice(0, FAULT_LENGTH_MAX))
  const more = faults.length - first.length
  return more > 0 ? [...first, `and ${more} more`] : first
}

function allFaults(typeName: string, data: unknown): readonly string[] {
  const fields = (typeof data === 'object' ? (data ?? {}) : {}) as Readonly<Record<string, unknown>>
  if (typeName === 'ziti-tunneler-client.v1') return targetFaults([fields['hostname']])
  if (typeName !== 'intercept.v1') return []
  const sources = listIn(fields['allowedSourceAddresses']).length > 0
  const addresses = listIn(fields['addresses'])
  if (addresses.length > interceptRulesMax) {
    return [`addresses has more than ${interceptRulesMax} members`]
  }
  return [
    ...(sources ? [`allowedSourceAddresses ${sourceAddressesFault}`] : []),
    ...targetFaults(addresses),
    ...portFaults(addresses, fields),
  ]
}

function targetFaults(texts: readonly unknown[]): readonly string[] {
  return texts.flatMap((text) => {
    if (typeof text !== 'string') return []
    const target = readInterceptTarget(text)
    if (target === null) return `${text} ${interceptAddressFault}`
    return target.type === 'network' ? (interceptNetworkFault(target.network) ?? []) : []
  })
}

/**
 * The reasons why no tunnel can listen on the port ranges. Only the widest range is checked,
 * because narrower ranges need fewer ports.
 */
function portFaults(
  addresses: readonly unknown[],
  fields: Readonly<Record<string, unknown>>,
): readonly string[] {
  const widest = listIn(fields['portRanges']).reduce<number>((most, range) => {
    const { low, high } = (range ?? {}) as { readonly low?: unknown; readonly high?: unknown }
    return Math.max(most, Number(high) - Number(low) + 1 || 0)
  }, 1)
  const protocols = listIn(fields['protocols']).map(String)
  return addresses.flatMap((text) => {
    const target = typeof text === 'string' ? readInterceptTarget(text) : null
    if (target?.type !== 'network' || interceptNetworkFault(target.network) !== null) return []
    return [...new Set(protocols)].flatMap((protocol) => {
      const found = chooseListeningMode(target.network, protocol, widest)
      return 'fault' in found ? found.fault : []
    })
  })
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
