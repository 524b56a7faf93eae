const MAPPED_IPV4 = '::ffff:'

/**
 * Whether two addresses are the same. A listener for both IPv4 and IPv6 reports an IPv4 peer as an
 * IPv4-mapped IPv6 address.
 */
export function isSameAddress(address: string, recorded: unknown): boolean {
  if (typeof recorded !== 'string' || recorded === '' || address === '') return false
  return plainAddress(address) === plainAddress(recorded)
}

function plainAddress(address: string): string {
  return address.startsWith(MAPPED_IPV4) ? address.slice(MAPPED_IPV4.length) : address
}
