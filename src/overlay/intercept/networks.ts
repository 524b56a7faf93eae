import {
  addressOfValue,
  addressValue,
  type IpAddress,
  type Network,
} from '../services/address-rules.ts'

const widths = { ipv4: 32, ipv6: 128 } as const

export function networkContains({ address, prefix }: Network, ip: IpAddress): boolean {
  if (address.family !== ip.family) return false
  const rest = BigInt(widths[ip.family] - prefix)
  return addressValue(address) >> rest === addressValue(ip) >> rest
}

/** Number of addresses of the network. */
export function networkSize({ address, prefix }: Network): number {
  return 2 ** (widths[address.family] - prefix)
}

export function isSingleAddress({ address, prefix }: Network): boolean {
  return prefix === widths[address.family]
}

export function singleNetwork(address: IpAddress): Network {
  return { address, prefix: widths[address.family] }
}

/** The address at this offset from the first one; null when the network is smaller. */
export function addressAt(network: Network, offset: number): IpAddress | null {
  if (offset >= networkSize(network)) return null
  return addressOfValue(firstValue(network) + BigInt(offset), network.address.family)
}

/** Canonical text of a network: its first address and the prefix. */
export function networkText(network: Network): string {
  const first = addressOfValue(firstValue(network), network.address.family)
  return `${first?.text ?? ''}/${network.prefix}`
}

function firstValue({ address, prefix }: Network): bigint {
  const rest = BigInt(widths[address.family] - prefix)
  return (addressValue(address) >> rest) << rest
}
