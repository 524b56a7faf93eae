import { BlockList, isIP } from 'node:net'

import { type IpAddress, ipv6Groups, parseIp } from './ip-address.ts'

export interface IpNetwork {
  readonly address: IpAddress
  readonly prefix: number
}

const widths = { ipv4: 32, ipv6: 128 } as const
const CIDR = /^([^/]+)\/([0-9]{1,3})$/

/**
 * Parses a network.
 * @param text `address/prefix`; the result is null when it is not a network.
 */
export function parseCidr(text: string): IpNetwork | null {
  const [, base = '', length = ''] = CIDR.exec(text) ?? []
  return isIP(base) === 0 ? null : createIpNetwork(base, Number(length))
}

/** The network with this address and prefix length; null when they do not form a network. */
export function createIpNetwork(text: string, prefix: number): IpNetwork | null {
  const address = parseIp(text)
  if (address === null || !Number.isInteger(prefix) || prefix < 0) return null
  const isMapped = address.family === 'ipv4' && text.includes(':')
  // For an IPv4-mapped network, the prefix length refers to the IPv6 address, so 96 is subtracted.
  const own = isMapped ? prefix - 96 : prefix
  return own < 0 || own > widths[address.family] ? null : { address, prefix: own }
}

/** Whether the network contains the address; false if their IP versions differ. */
export function networkContains(network: IpNetwork, ip: IpAddress): boolean {
  return network.address.family === ip.family && offsetOf(network, ip) !== null
}

/** Number of addresses of the network. */
export function networkSize({ address, prefix }: IpNetwork): number {
  return 2 ** (widths[address.family] - prefix)
}

/** Whether the prefix covers exactly one address. */
export function isSingleAddress({ address, prefix }: IpNetwork): boolean {
  return prefix === widths[address.family]
}

export function singleAddressNetwork(address: IpAddress): IpNetwork {
  return { address, prefix: widths[address.family] }
}

/**
 * The address at this offset from the network's first address; null when the network has fewer
 * addresses.
 */
export function addressAt(network: IpNetwork, offset: number): IpAddress | null {
  return offset >= networkSize(network) ? null : addressFrom(network, BigInt(offset))
}

/** Canonical form of a network: its first address and the prefix length. */
export function formatIpNetwork(network: IpNetwork): string {
  return `${addressFrom(network, 0n)?.text ?? ''}/${network.prefix}`
}

/**
 * Translates an address from one network to another: the host bits stay the same. null when the
 * address is not in the first network, or the networks differ in size or IP version.
 */
export function translateAddress(
  address: IpAddress,
  from: IpNetwork,
  to: IpNetwork,
): IpAddress | null {
  const { family } = address
  if (from.address.family !== family || to.address.family !== family) return null
  if (from.prefix !== to.prefix) return null
  const offset = offsetOf(from, address)
  return offset === null ? null : addressFrom(to, offset)
}

/** Host bits of an address of the same IP version; null when the address is outside the network. */
function offsetOf(network: IpNetwork, ip: IpAddress): bigint | null {
  const offset = valueOf(ip) - firstValue(network)
  return offset >= 0n && offset < BigInt(networkSize(network)) ? offset : null
}

function addressFrom(network: IpNetwork, offset: bigint): IpAddress | null {
  const value = firstValue(network) + offset
  const isV4 = network.address.family === 'ipv4'
  const [parts, bits] = isV4 ? [4, 8] : [8, 16]
  const each = Array.from({ length: parts }, (_, at) =>
    Number(BigInt.asUintN(bits, value >> BigInt(bits * (parts - 1 - at)))),
  )
  return parseIp(isV4 ? each.join('.') : each.map((group) => group.toString(16)).join(':'))
}

function firstValue({ address, prefix }: IpNetwork): bigint {
  const rest = BigInt(widths[address.family] - prefix)
  return (valueOf(address) >> rest) << rest
}

function valueOf({ text, family }: IpAddress): bigint {
  const isV4 = family === 'ipv4'
  const parts = isV4 ? text.split('.').map(Number) : ipv6Groups(text)
  return parts.reduce((value, part) => (value << (isV4 ? 8n : 16n)) | BigInt(part), 0n)
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
export function isLocalAddress({ text, family }: IpAddress): boolean {
  return notRoutable.check(text, family)
}
