import { isIPv6 } from 'node:net'

/** One customer holds a /64 of IPv6 (RFC 6177), so that is one source. */
export function addressSource(address: string): string {
  // A quick check first, because `isIPv6` is slow and rarely needed.
  if (!address.includes(':') || !isIPv6(address) || address.startsWith('::ffff:')) return address
  const [head = '', tail = ''] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === '' ? [] : tail.split(':')
  const zeros = address.includes('::') ? Math.max(0, 8 - first.length - last.length) : 0
  return [...first, ...Array<string>(zeros).fill('0'), ...last].slice(0, 4).join(':')
}

/** Key in a `FairShare` for unauthenticated requests from this address. */
export function addressShareKey(address: string): string {
  return `from ${addressSource(address)}`
}
