import { readFileSync } from 'node:fs'
import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os'
import { join } from 'node:path'

import { interfaceFlag } from '../../lib/interface-flags.ts'
import type { HostInterface } from '../../channel/messages/reports.ts'
import { reportLimits } from './limits.ts'

/** Flags of an interface in Linux (`IFF_…` in `linux/if.h`). */
const linuxFlag = { up: 0x1, broadcast: 0x2, loopback: 0x8, pointToPoint: 0x10, multicast: 0x1000 }

/**
 * Active network interfaces of this host, with their addresses.
 * @param folder the folder in which Linux describes its interfaces.
 */
export function hostInterfaces(
  listed: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
  folder = '/sys/class/net',
): readonly HostInterface[] {
  const { interfacesMax, interfaceAddressesMax } = reportLimits
  return [...byDevice(listed)].slice(0, interfacesMax).map(([name, infos]) => {
    const read = (fact: string): string => factIn(join(folder, name, fact))
    const mac = infos[0]?.mac ?? ''
    return {
      name,
      hardwareAddress: /^[0:]*$/.test(mac) ? '' : mac,
      mtu: countIn(read('mtu')),
      index: countIn(read('ifindex')),
      flags: flagsIn(read, infos),
      addresses: infos.slice(0, interfaceAddressesMax).map(({ cidr, address }) => cidr ?? address),
    }
  })
}

/**
 * Groups addresses by device: Node.js lists an address with a label, such as `eth0:1`, as a
 * separate interface.
 */
function byDevice(
  listed: NodeJS.Dict<NetworkInterfaceInfo[]>,
): ReadonlyMap<string, readonly NetworkInterfaceInfo[]> {
  const devices = new Map<string, NetworkInterfaceInfo[]>()
  for (const [label, infos = []] of Object.entries(listed)) {
    const name = label.replace(/:.*$/, '')
    devices.set(name, [...(devices.get(name) ?? []), ...infos])
  }
  return devices
}

function flagsIn(read: (fact: string) => string, infos: readonly NetworkInterfaceInfo[]): number {
  const bits = countIn(read('flags'))
  if (bits === 0) {
    // An operating system other than Linux reports no flags here. Node.js lists only interfaces
    // that are up.
    const isLoopback = infos.some(({ internal }) => internal)
    return interfaceFlag.up | (isLoopback ? interfaceFlag.loopback : 0)
  }
  // Interfaces without a carrier signal, such as the loopback interface, have the state `unknown`,
  // so this state counts as running.
  const isRunning = (bits & linuxFlag.up) !== 0 && ['up', 'unknown'].includes(read('operstate'))
  const names = Object.keys(linuxFlag) as readonly (keyof typeof linuxFlag)[]
  return names
    .filter((name) => (bits & linuxFlag[name]) !== 0)
    .reduce((flags, name) => flags | interfaceFlag[name], isRunning ? interfaceFlag.running : 0)
}

/** @returns the content of the file; '' if the system has no such file. */
function factIn(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

/** The number in a text, decimal or hexadecimal; 0 if there is none. */
function countIn(text: string): number {
  const count = text === '' ? 0 : Number(text)
  return Number.isSafeInteger(count) && count > 0 ? count : 0
}
