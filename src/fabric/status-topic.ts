import { create } from '@bufbuild/protobuf'

import {
  type RouterStatus as RouterStatusMessage,
  RouterStatusSchema,
} from '../../proto/gen/soft_pb.ts'
import { integer } from '../lib/text/safe-integer.ts'
import { copyTextStart } from '../lib/text/own-text.ts'
import type { RouterStatus, RouterStatuses } from '../ports/router-status.ts'
import type { OpenTopic } from '../ports/soft-topics.ts'
import { routerLimits } from './limits.ts'

const {
  routerCapabilitiesMax,
  routerInterfaceAddressesMax,
  routerInterfaceCharactersMax,
  routerInterfacesMax,
  routerListenersShownMax,
  routerProtocolsMax,
  routerTextCharactersMax,
} = routerLimits

export function routerStatusMessage(status: RouterStatus): RouterStatusMessage {
  const { capabilities, linkListeners, interfaces, ...rest } = bounded(status)
  return create(RouterStatusSchema, {
    ...rest,
    capabilities: [...capabilities],
    linkListeners: [...linkListeners],
    interfaces: interfaces.map(({ mtu, index, addresses, ...one }) => ({
      ...one,
      mtu: BigInt(mtu),
      index: BigInt(index),
      addresses: [...addresses],
    })),
  })
}

function statusOf({
  hostname,
  protocols,
  version,
  capabilities,
  linkListeners,
  interfaces,
}: RouterStatusMessage): RouterStatus {
  const { version: of = '', revision = '', buildDate = '', os = '', arch = '' } = version ?? {}
  const known = { version: of, revision, buildDate, os, arch }
  return bounded({
    hostname,
    protocols,
    version: known,
    capabilities,
    linkListeners,
    interfaces: interfaces.map(({ mtu, index, ...one }) => ({
      ...one,
      mtu: integer(mtu),
      index: integer(index),
    })),
  })
}

/** Limits the length of values, which routers report and peers repeat. */
function bounded(status: RouterStatus): RouterStatus {
  const { hostname, protocols, version, capabilities, linkListeners, interfaces } = status
  const text = (value: string): string => copyTextStart(value, routerTextCharactersMax)
  const short = (value: string): string => copyTextStart(value, routerInterfaceCharactersMax)
  const entries = Object.entries(protocols).slice(0, routerProtocolsMax)
  return {
    hostname: text(hostname),
    protocols: Object.fromEntries(entries.map(([name, url]) => [text(name), text(url)])),
    version: {
      version: text(version.version),
      revision: text(version.revision),
      buildDate: text(version.buildDate),
      os: text(version.os),
      arch: text(version.arch),
    },
    capabilities: capabilities.slice(0, routerCapabilitiesMax),
    linkListeners: linkListeners.slice(0, routerListenersShownMax).map(({ address, protocol }) => ({
      address: text(address),
      protocol: text(protocol),
    })),
    interfaces: interfaces.slice(0, routerInterfacesMax).map((one) => ({
      name: short(one.name),
      hardwareAddress: short(one.hardwareAddress),
      mtu: one.mtu,
      index: one.index,
      flags: one.flags,
      addresses: one.addresses.slice(0, routerInterfaceAddressesMax).map(short),
    })),
  }
}

/**
 * Connected routers, shared as soft state. A router is online while any controller has a channel to
 * it, so all controllers show the same routers as online.
 */
export class RouterStatusTopic implements RouterStatuses {
  readonly #topic: OpenTopic<'routers'>
  /**
   * Status by router ID and reporting controller, because lists look up one router after another.
   */
  readonly #byRouter = new Map<string, Map<string, RouterStatus>>()
  readonly #selfId: string
  /** Connections reported by the routers of this controller; null if none is connected. */
  connections: (identityId: string) => boolean | null = () => null
  dialCost: (terminatorId: string) => number = () => 0

  constructor(selfId: string, topic: OpenTopic<'routers'>) {
    this.#selfId = selfId
    this.#topic = topic
    topic.onChange((owner, routerId, message) => {
      this.#note(owner, routerId, message === undefined ? undefined : statusOf(message))
    })
  }

  of(routerId: string): RouterStatus | null {
    const said = this.#byRouter.get(routerId)
    if (said === undefined) return null
    // All controllers choose the same status: first one with a host name, then the smallest ID.
    const [first] = [...said].sort(
      ([a, one], [b, other]) =>
        Number(one.hostname === '') - Number(other.hostname === '') || (a < b ? -1 : 1),
    )
    return first?.[1] ?? null
  }

  hasConnection(identityId: string): boolean | null {
    return this.connections(identityId)
  }

  /**
   * @returns false if the status cannot be published because too many routers are connected here.
   */
  publish(routerId: string, status: RouterStatus): boolean {
    this.#note(this.#selfId, routerId, bounded(status))
    return this.#topic.publish(routerId, routerStatusMessage(status))
  }

  withdraw(routerId: string): void {
    this.#note(this.#selfId, routerId, undefined)
    this.#topic.withdraw(routerId)
  }

  #note(owner: string, routerId: string, status: RouterStatus | undefined): void {
    let said = this.#byRouter.get(routerId)
    if (status === undefined) {
      said?.delete(owner)
      if (said?.size === 0) this.#byRouter.delete(routerId)
      return
    }
    if (said === undefined) this.#byRouter.set(routerId, (said = new Map()))
    said.set(owner, status)
  }
}
