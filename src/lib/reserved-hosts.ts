import { BlockList, isIP } from 'node:net'

import { ipv4FromGroups, ipv6Groups } from './text/ip-address.ts'

// Addresses to which a controller must never connect on behalf of a user who stored a URL. Tests
// may allow addresses of the controller's own host. Link-local addresses and the metadata services
// of clouds, which give credentials to any process on the host, are never allowed.

const thisHost = blockListOf(['0.0.0.0/8', '127.0.0.0/8', '::/128', '::1/128'])
const THIS_HOST_NAME = /(^|\.)(localhost|localhost\.localdomain|ip6-localhost|ip6-loopback)$/

const alwaysRefused = blockListOf([
  '169.254.0.0/16',
  'fe80::/10',
  // Metadata services outside the link-local range, of Alibaba, Oracle, Azure, Amazon and Google.
  '100.100.100.200/32',
  '192.0.0.192/32',
  '168.63.129.16/32',
  'fd00:ec2::/32',
  'fd20:ce::/32',
  '255.255.255.255/32',
])
const METADATA_NAME = /(^|\.)metadata\.google\.internal$/

/**
 * Whether the host of a URL is reserved. The URL parser has already normalized decimal, octal and
 * hex forms, and digits of other scripts.
 * @param allowsThisHost whether loopback and unspecified addresses are allowed.
 */
export function isReservedHost({ hostname }: URL, allowsThisHost = false): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '')
    .toLowerCase()
  if (host === '' || METADATA_NAME.test(host)) return true
  return isReservedAddress(host, allowsThisHost) || (!allowsThisHost && THIS_HOST_NAME.test(host))
}

/**
 * Whether an address is reserved. Also used for the addresses to which a name resolves.
 * @param allowsThisHost as for `isReservedHost`.
 */
export function isReservedAddress(address: string, allowsThisHost = false): boolean {
  return (
    canReachAddressIn(alwaysRefused, address) ||
    (!allowsThisHost && canReachAddressIn(thisHost, address))
  )
}

/**
 * Whether a connection to the address may reach an address in the list, also through a gateway to
 * IPv4. False if the text is not an address.
 */
export function canReachAddressIn(list: BlockList, address: string): boolean {
  // Removes the zone: an address may include the name of its network interface.
  const plain = address.replace(/%.*$/s, '')
  const version = isIP(plain)
  if (version === 0) return false
  // @guard signer-keys--embedded
  const reached = version === 6 ? [plain, ...embeddedIpv4(plain)] : [plain]
  return reached.some((one) => list.check(one, isIP(one) === 6 ? 'ipv6' : 'ipv4'))
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    list.addSubnet(address, Number(prefix), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

/**
 * The IPv4 addresses that a connection to an IPv6 address may reach: mapped and compatible
 * addresses, NAT64 (RFC 6052) and 6to4.
 */
function embeddedIpv4(address: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = ipv6Groups(address)
  if (a === 0x2002) return [ipv4FromGroups(b, c)]
  const isNat64 = a === 0x64 && b === 0xff9b
  const isLow = a === 0 && b === 0 && c === 0 && d === 0 && (e === 0 || e === 0xffff)
  const isMapped = isLow && (f === 0 || f === 0xffff)
  return isNat64 || isMapped ? [ipv4FromGroups(g, h)] : []
}
