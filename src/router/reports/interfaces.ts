import { networkInterfaces } from 'node:os'

import type { HostInterface } from '../controllers/messages.ts'
import { routerProgramLimits } from '../limits.ts'

/** Network interfaces of this host that are up, with their addresses. */
export function hostInterfaces(): readonly HostInterface[] {
  const { interfacesMax, interfaceAddressesMax } = routerProgramLimits
  return Object.entries(networkInterfaces())
    .slice(0, interfacesMax)
    .map(([name, addresses = []]) => ({
      name,
      hardwareAddress: addresses[0]?.mac ?? '',
      addresses: addresses
        .slice(0, interfaceAddressesMax)
        .map(({ cidr, address }) => cidr ?? address),
      isLoopback: addresses.some(({ internal }) => internal),
    }))
}
