import { lookup } from 'node:dns/promises'

import { DialFailure } from '../circuits/circuit-endpoint.ts'
import { AddressRules, isUnspecifiedAddress } from './address-rules.ts'
import { parseDnsName } from '../../lib/text/host-name.ts'
import type { AppData } from './app-data.ts'
import type { HostConfig, TunnelProtocol } from './host-config.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'
import { type IpAddress, parseIp } from '../../lib/text/ip-address.ts'
import { isLocalAddress, translateAddress } from '../../lib/text/networks.ts'

/** Target of a circuit to a hosted service. */
export interface HostTarget {
  readonly protocol: TunnelProtocol
  /**
   * An address, or a name that the operator permitted; `isReachable` restricts where it may lead.
   */
  readonly host: string
  readonly port: number
  /**
   * Whether `host`, a name that only a wildcard rule permits, may resolve to the address; null if
   * `host` needs no such test.
   */
  readonly isReachable: ((address: IpAddress) => boolean) | null
}

/**
 * Determines the target that a client may reach; no other code does. Refuses every target that the
 * operator has not permitted.
 * @throws {DialFailure}
 */
export function chooseHostTarget(terms: HostConfig, data: AppData): HostTarget {
  if (data.connectionType !== null) {
    throw refused(`connections of type ${data.connectionType} are not supported`)
  }
  // @guard targets-of-a-tunnel--source
  if (data.sourceAddress !== null) {
    throw refused('the config requires a source address, but this host uses its own')
  }
  return { protocol: protocolFor(terms, data), port: portFor(terms, data), ...hostFor(terms, data) }
}

function protocolFor({ protocol }: HostConfig, data: AppData): TunnelProtocol {
  if (typeof protocol === 'string') return protocol
  if (data.protocol === null) throw refused('dst_protocol is missing')
  // @guard targets-of-a-tunnel--protocols
  for (const allowed of protocol) if (allowed === data.protocol) return allowed
  throw refused(`protocol ${data.protocol} is not allowed`)
}

function portFor({ port }: HostConfig, data: AppData): number {
  if (typeof port === 'number') return port
  if (data.port === null) throw refused('dst_port is missing')
  const asked = /^[1-9][0-9]{0,4}$/.test(data.port) ? Number(data.port) : 0
  // @guard targets-of-a-tunnel--ports
  if (asked > 0 && asked <= 65_535 && port.some(({ low, high }) => asked >= low && asked <= high)) {
    return asked
  }
  throw new DialFailure(dialErrorCodes.portNotAllowed, `port ${data.port} is not allowed`)
}

function hostFor(terms: HostConfig, data: AppData): Pick<HostTarget, 'host' | 'isReachable'> {
  const { address: rules } = terms
  if (!(rules instanceof AddressRules)) return { host: rules, isReachable: null }
  // If the client sends a name, only the name counts: if it is not permitted, the address in the
  // same request is not used either.
  if (data.hostname !== null) return hostNamed(rules, data.hostname)
  if (data.address === null) throw refused('dst_hostname and dst_ip are missing')
  const asked = parseIp(data.address)
  // @guard targets-of-a-tunnel--addresses, targets-of-a-tunnel--any
  if (asked === null || isUnspecifiedAddress(asked) || !rules.allowsAddress(asked)) {
    throw refused(`address ${data.address} is not allowed`)
  }
  for (const { from, to } of terms.translations) {
    const found = translateAddress(asked, from, to)
    if (found !== null) return { host: found.text, isReachable: null }
  }
  return { host: asked.text, isReachable: null }
}

function hostNamed(rules: AddressRules, asked: string): Pick<HostTarget, 'host' | 'isReachable'> {
  const name = parseDnsName(asked)
  const rule = name === null ? null : rules.ruleFor(name)
  // @guard targets-of-a-tunnel--names
  if (name === null || rule === null) throw refused(`name ${asked} is not allowed`)
  if (rule === 'exact') return { host: name, isReachable: null }
  // The owner of the domain decides to which addresses names below the wildcard resolve, so local
  // addresses must be permitted separately.
  return { host: name, isReachable: (ip) => !isLocalAddress(ip) || rules.allowsAddress(ip) }
}

/**
 * The address to which to connect. Resolves the name here, so that the address that was checked is
 * the one that is used.
 * @throws {DialFailure} @throws {Error} of the resolver.
 */
export async function resolveTarget({ host, isReachable }: HostTarget): Promise<string> {
  const given = parseIp(host)
  if (given !== null) return given.text
  const found = await lookup(host, { all: true })
  for (const { address } of found) {
    const ip = parseIp(address)
    // @guard targets-of-a-tunnel--resolved
    if (ip !== null && (isReachable === null || isReachable(ip))) return ip.text
  }
  throw refused(`${host} leads to an address that is not allowed`)
}

function refused(reason: string): DialFailure {
  return new DialFailure(dialErrorCodes.rejected, reason)
}
