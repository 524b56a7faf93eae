import { BlockList, isIP } from 'node:net'

import { ipv4FromGroups, ipv6Groups } from './text/ip-address.ts'

// Addresses that URLs stored by users must not make a controller connect to: its own host,
// link-local addresses, and the metadata services of clouds, which give credentials to any process
// on the host.

const reserved = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  // Metadata services outside the link-local range: Alibaba, Oracle.
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
  ['255.255.255.255', 32],
] as const) {
  reserved.addSubnet(net, prefix, 'ipv4')
}
for (const [net, prefix] of [
  ['::', 128],
  ['::1', 128],
  ['fe80::', 10],
  // Metadata services: Amazon, Google.
  ['fd00:ec2::', 32],
  ['fd20:ce::', 32],
] as const) {
  reserved.addSubnet(net, prefix, 'ipv6')
}

const NAME =
  /(^|\.)(localhost|localhost\.localdomain|ip6-localhost|ip6-loopback|metadata\.google\.internal)$/

/**
 * Whether the host of a URL is reserved. The URL parser has already normalized numbers in decimal,
 * octal or hex, and digits of other scripts.
 */
export function isReservedHost({ hostname }: URL): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '')
    .toLowerCase()
  return host === '' || isReservedAddress(host) || NAME.test(host)
}

/** Whether an address is reserved, also for the addresses that a name resolves to. */
export function isReservedAddress(address: string): boolean {
  const version = isIP(address)
  if (version === 0) return false
  if (version === 4) return reserved.check(address, 'ipv4')
  if (reserved.check(address, 'ipv6')) return true
  return embeddedIpv4(address).some((one) => reserved.check(one, 'ipv4'))
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
