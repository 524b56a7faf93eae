import type { LiveRouterField } from '../../entities/fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { interfaceFlag } from '../../lib/interface-flags.ts'
import { capabilityMask, capabilityNames } from '../../lib/router-capabilities.ts'
import type { RouterInterface, RouterStatus } from '../../ports/router-status.ts'

const noVersion = { version: '', revision: '', buildDate: '', os: '', arch: '' } as const

function shownInterface({ flags, addresses, ...rest }: RouterInterface): JsonObject {
  const has = (flag: number): boolean => (flags & flag) !== 0
  return {
    ...rest,
    addresses: [...addresses],
    isBroadcast: has(interfaceFlag.broadcast),
    isLoopback: has(interfaceFlag.loopback),
    isMulticast: has(interfaceFlag.multicast),
    isRunning: has(interfaceFlag.running),
    isUp: has(interfaceFlag.up),
  }
}

/**
 * Live data about a router for details and filters. Only the online and synchronization status have
 * a value while the router has no channel to any controller; other data is then empty.
 */
export function readLiveRouterField(status: RouterStatus | null, fact: LiveRouterField): Json {
  switch (fact) {
    case 'isOnline':
      return status !== null
    case 'hostname':
      return status?.hostname ?? ''
    case 'supportedProtocols':
      return status === null ? {} : { ...status.protocols }
    case 'syncStatus':
      if (status === null) return 'SYNC_UNKNOWN'
      // A known host name shows that the router has reported its listeners. After that report, the
      // controller sends the router the data model.
      return status.hostname === '' ? 'SYNC_HELLO' : 'SYNC_DONE'
    case 'version':
      return status?.version.version ?? ''
    case 'versionInfo':
      return status === null ? null : { ...status.version }
    case 'versionInfoOrEmpty':
      return { ...(status?.version ?? noVersion) }
    case 'capabilities':
      return capabilityNames(status?.capabilities ?? [])
    case 'capabilitiesMask':
      return capabilityMask(status?.capabilities ?? [])
    case 'interfaces':
      return (status?.interfaces ?? []).map(shownInterface)
    case 'linkListeners':
      return (status?.linkListeners ?? []).map((listener) => ({ ...listener }))
  }
}
