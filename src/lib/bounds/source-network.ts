import { isIPv6 } from 'node:net'

/**
 * The network that counts as one client: the /64 of an IPv6 address, because one customer usually
 * has a whole /64 (RFC 6177); otherwise the address itself.
 */
export function sourceNetwork(address: string): string {
  // This quick check comes first, because `isIPv6` is slow and most addresses do not need it.
  if (!address.includes(':') || !isIPv6(address) || address.startsWith('::ffff:')) return address
  const [head = '', tail = ''] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === '' ? [] : tail.split(':')
  const zeros = address.includes('::') ? Math.max(0, 8 - first.length - last.length) : 0
  return [...first, ...Array<string>(zeros).fill('0'), ...last].slice(0, 4).join(':')
}

/** Key in a `FairShare` for unauthenticated requests from this address. */
export function addressShareKey(address: string): string {
  return `from ${sourceNetwork(address)}`
}
