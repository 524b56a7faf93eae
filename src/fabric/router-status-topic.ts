import { create } from '@bufbuild/protobuf'

import {
  type RouterStatus as RouterStatusMessage,
  RouterStatusSchema,
} from '../../proto/gen/soft_pb.ts'
import { toSafeInteger } from '../lib/text/safe-integer.ts'
import { copyPrefix } from '../lib/text/copy-prefix.ts'
import type { Clock } from '../lib/clock.ts'
import type { RouterPresence, RouterStatus, RouterStatuses } from '../ports/router-status.ts'
import type { OpenSoftTopic } from '../ports/soft-topics.ts'
import { routerLimits } from './limits.ts'

const {
  routerCapabilitiesMax,
  routerInterfaceAddressesMax,
  routerInterfaceCharactersMax,
  routerInterfacesMax,
  routerListenersShownMax,
  routerPresencesMax,
  routerProtocolsMax,
  routerTextCharactersMax,
} = routerLimits

/** @param connectedAtMs time at which the router's channel opened, UTC ms. */
export function routerStatusMessage(
  status: RouterStatus,
  connectedAtMs: number,
): RouterStatusMessage {
  const { capabilities, linkListeners, interfaces, ...rest } = bounded(status)
  return create(RouterStatusSchema, {
    ...rest,
    connectedAtMs: BigInt(Math.floor(connectedAtMs)),
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
      mtu: toSafeInteger(mtu),
      index: toSafeInteger(index),
    })),
  })
}

/**
 * Truncates texts, because routers determine their length and this controller sends them to all
 * others.
 */
function bounded(status: RouterStatus): RouterStatus {
  const { hostname, protocols, version, capabilities, linkListeners, interfaces } = status
  const text = (value: string): string => copyPrefix(value, routerTextCharactersMax)
  const short = (value: string): string => copyPrefix(value, routerInterfaceCharactersMax)
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

/** The status of a router according to one controller. */
interface Reported {
  readonly status: RouterStatus
  readonly connectedAtMs: number
}

/**
 * Status of connected routers, which controllers share as soft state. A router is online if any
 * controller has a channel to it, so all controllers show the same routers as online.
 */
export class RouterStatusTopic implements RouterStatuses {
  readonly #topic: OpenSoftTopic<'routers'>
  /**
   * Status by router ID and by ID of the reporting controller. The maps are nested, because lists
   * look up one router after another.
   */
  readonly #byRouter = new Map<string, Map<string, Reported>>()
  /**
   * Times at which routers lost their last channel. `#returned` has the times at which they
   * connected again.
   */
  readonly #lost = new Map<string, number>()
  readonly #returned = new Map<string, number>()
  readonly #selfId: string
  readonly #clock: Pick<Clock, 'nowMs'>
  /**
   * Whether an identity is connected to a router of this controller; null if this controller has no
   * router.
   */
  connections: (identityId: string) => boolean | null = () => null
  dialCost: (terminatorId: string) => number = () => 0

  constructor(selfId: string, topic: OpenSoftTopic<'routers'>, clock: Pick<Clock, 'nowMs'>) {
    this.#selfId = selfId
    this.#topic = topic
    this.#clock = clock
    topic.onChange((owner, routerId, message) => {
      if (message === undefined) this.#note(owner, routerId, undefined)
      else {
        const saidMs = toSafeInteger(message.connectedAtMs)
        // The local time is used if a controller of an older release reports no time, or if the
        // clock of another controller is ahead.
        const connectedAtMs = Math.min(saidMs || Infinity, clock.nowMs())
        this.#note(owner, routerId, { status: statusOf(message), connectedAtMs })
      }
    })
  }

  of(routerId: string): RouterStatus | null {
    const said = this.#byRouter.get(routerId)
    if (said === undefined) return null
    // The order makes all controllers choose the same status: one with a host name comes first,
    // then the one from the smallest controller ID.
    const [first] = [...said].sort(
      ([a, one], [b, other]) =>
        Number(one.status.hostname === '') - Number(other.status.hostname === '') ||
        (a < b ? -1 : 1),
    )
    return first?.[1].status ?? null
  }

  presenceOf(routerId: string): RouterPresence {
    const said = this.#byRouter.get(routerId)
    const connectedMs =
      said === undefined ? null : Math.min(...[...said.values()].map((one) => one.connectedAtMs))
    const returnedMs = this.#returned.get(routerId) ?? null
    return { connectedMs, returnedMs, lostMs: this.#lost.get(routerId) ?? null }
  }

  hasConnection(identityId: string): boolean | null {
    return this.connections(identityId)
  }

  /**
   * @returns false if the status cannot be published because too many routers are connected here.
   */
  publish(routerId: string, status: RouterStatus): boolean {
    const earlier = this.#byRouter.get(routerId)?.get(this.#selfId)
    const connectedAtMs = earlier?.connectedAtMs ?? this.#clock.nowMs()
    this.#note(this.#selfId, routerId, { status: bounded(status), connectedAtMs })
    return this.#topic.publish(routerId, routerStatusMessage(status, connectedAtMs))
  }

  withdraw(routerId: string): void {
    this.#note(this.#selfId, routerId, undefined)
    this.#topic.withdraw(routerId)
  }

  #note(owner: string, routerId: string, reported: Reported | undefined): void {
    let said = this.#byRouter.get(routerId)
    if (reported === undefined) {
      said?.delete(owner)
      if (said?.size !== 0) return
      this.#byRouter.delete(routerId)
      remember(this.#lost, routerId, this.#clock.nowMs())
      this.#returned.delete(routerId)
      return
    }
    if (said === undefined) {
      this.#byRouter.set(routerId, (said = new Map()))
      if (this.#lost.delete(routerId)) {
        remember(this.#returned, routerId, this.#clock.nowMs())
      }
    }
    said.set(owner, reported)
  }
}

/** Stores a time for a router; if there are too many routers, evicts the oldest times. */
function remember(times: Map<string, number>, routerId: string, atMs: number): void {
  times.delete(routerId)
  for (const [oldest] of times) {
    if (times.size < routerPresencesMax) break
    times.delete(oldest)
  }
  times.set(routerId, atMs)
}
