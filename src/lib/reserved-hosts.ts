import { BlockList, isIP } from 'node:net'

import { ipv4FromGroups, ipv6Groups } from './text/ip-address.ts'

// Addresses that URLs stored by users must not make a controller connect to: its own host,
// link-local addresses, and the metadata services of clouds, which give credentials to any process
// on the host.

const loopback = blockList([
  ['127.0.0.0', 8, 'ipv4'],
  ['::1', 128, 'ipv6'],
])
const neverAllowed = blockList([
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  // Metadata services outside the link-local range: Alibaba, Oracle.
  ['100.100.100.200', 32, 'ipv4'],
  ['192.0.0.192', 32, 'ipv4'],
  ['255.255.255.255', 32, 'ipv4'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  // Metadata services: Amazon, Google.
  ['fd00:ec2::', 32, 'ipv6'],
  ['fd20:ce::', 32, 'ipv6'],
])

const LOOPBACK_NAME = /(^|\.)(localhost|localhost\.localdomain|ip6-localhost|ip6-loopback)$/
const METADATA_NAME = /(^|\.)metadata\.google\.internal$/

/**
 * Whether the host of a URL is reserved. The URL parser has already normalized numbers in decimal,
 * octal or hex, and digits of other scripts.
 * @param allowsLoopback whether loopback addresses are not reserved, as the configuration says.
 */
export function isReservedHost({ hostname }: URL, allowsLoopback: boolean): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '')
    .toLowerCase()
  if (host === '' || METADATA_NAME.test(host)) return true
  if (LOOPBACK_NAME.test(host)) return !allowsLoopback
  return isReservedAddress(host, allowsLoopback)
}

/** Whether an address is reserved, also for the addresses that a name resolves to. */
export function isReservedAddress(address: string, allowsLoopback: boolean): boolean {
  const version = isIP(address)
  if (version === 0) return false
  if (version === 4) return isReservedIn('ipv4', address, allowsLoopback)
  // The digits of ::1 also read as an embedded IPv4 address.
  if (loopback.check(address, 'ipv6')) return !allowsLoopback
  if (isReservedIn('ipv6', address, allowsLoopback)) return true
  return embeddedIpv4(address).some((one) => isReservedIn('ipv4', one, allowsLoopback))
}

function isReservedIn(family: 'ipv4' | 'ipv6', address: string, allowsLoopback: boolean): boolean {
  return neverAllowed.check(address, family) || (!allowsLoopback && loopback.check(address, family))
}

function blockList(networks: readonly (readonly [string, number, 'ipv4' | 'ipv6'])[]): BlockList {
  const list = new BlockList()
  for (const [network, prefix, family] of networks) list.addSubnet(network, prefix, family)
  return list
}

/**
 * The IPv4 addresses that an IPv6 address may reach: mapped, compatible, NAT64 (RFC 6052), 6to4.
 */
function embeddedIpv4(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = ipv6Groups(address)
  if (a === 0x2002) return [ipv4FromGroups(b, c)]
  const isNat64 = a === 0x64 && b === 0xff9b
  const isLow = a === 0 && b === 0 && c === 0 && d === 0 && (e === 0 || e === 0xffff)
  const isMapped = isLow && (f === 0 || f === 0xffff)
  return isNat64 || isMapped ? [ipv4FromGroups(g, h)] : []
}
