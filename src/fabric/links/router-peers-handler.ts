import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type LinkListener,
  LinkListenersSchema,
  PeerState,
  type PeerStateChange,
  PeerStateChangeSchema,
  PeerStateChangesSchema,
} from '../../../proto/gen/router_pb.ts'
import { readBitMask } from '../../channel/headers.ts'
import { messageBounds } from '../../channel/message-bounds.ts'
import { MULTI_CHANNEL } from '../../lib/router-capabilities.ts'
import { protobufBodyFault } from '../../channel/wire-scan.ts'
import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import type { RouterConnection } from '../router-connection.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { routerLimits } from '../limits.ts'
import {
  controlHeaderKey,
  controlContentType,
  legacyHelloHeaderKey,
} from '../../channel/messages/control.ts'

const { linkListenersMax, routerTextCharactersMax } = routerLimits

interface RouterPeersHandlerDeps {
  /** IDs of all routers that may have links, whether connected or not. */
  readonly routerIds: () => Iterable<string>
  readonly connections: () => Iterable<RouterConnection>
}

/**
 * Sends to each router the state and link listeners of all other routers, so that routers can dial
 * each other. A router that connects gets the full list; connected routers get the changes in
 * batches.
 */
export class RouterPeersHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #deps: RouterPeersHandlerDeps
  /** Link listeners of connected routers, by router ID. */
  readonly #listeners = new Map<string, readonly LinkListener[]>()
  /** IDs of routers that have changed since the last sweep. */
  readonly #changed = new Set<string>()
  #known: ReadonlySet<string> = new Set()

  constructor(deps: RouterPeersHandlerDeps) {
    this.#deps = deps
    this.handlers = new Map([
      [
        controlContentType.updateLinkListeners,
        (connection, { body }) => this.#listensAt(connection, listenersIn(body)),
      ],
    ])
  }

  onConnected(connection: RouterConnection): void {
    const { id } = connection.router
    this.#listensAt(connection, listenersOfHello(connection.hello.headers))
    const byId = this.#connectedById()
    const others: PeerStateChange[] = []
    for (const other of this.#deps.routerIds()) {
      if (other !== id) others.push(this.#stateOf(other, byId.get(other), true))
    }
    connection.channel.send(changesMessage(others))
  }

  #listensAt(connection: RouterConnection, listeners: readonly LinkListener[]): void {
    const { id } = connection.router
    this.#listeners.set(id, listeners)
    this.#changed.add(id)
    connection.report({
      linkListeners: listeners.map(({ address, protocol }) => ({ address, protocol })),
    })
  }

  onDisconnected({ router }: RouterConnection): void {
    this.#listeners.delete(router.id)
    this.#changed.add(router.id)
  }

  /** IDs of the routers whose changes the next sweep sends. */
  changedIds(): readonly string[] {
    return [...this.#changed]
  }

  onSweep(): void {
    const byId = this.#connectedById()
    if (byId.size === 0) {
      // Nothing to send: no router is connected, and the next router that connects gets the full
      // list.
      this.#changed.clear()
      return
    }
    const known = new Set(this.#deps.routerIds())
    for (const id of known.symmetricDifference(this.#known)) this.#changed.add(id)
    this.#known = known
    if (this.#changed.size === 0) return
    const changes = Array.from(this.#changed, (id) =>
      this.#stateOf(id, byId.get(id), known.has(id)),
    )
    const toOthers = changesMessage(changes)
    for (const { router, channel } of byId.values()) {
      if (!this.#changed.has(router.id)) channel.send(toOthers)
      else {
        // Excludes the receiving router, because it would dial itself.
        const others = changes.filter(({ id }) => id !== router.id)
        if (others.length > 0) channel.send(changesMessage(others))
      }
    }
    this.#changed.clear()
  }

  #connectedById(): Map<string, RouterConnection> {
    return new Map(Array.from(this.#deps.connections(), (each) => [each.router.id, each]))
  }

  #stateOf(
    id: string,
    connection: RouterConnection | undefined,
    isThere: boolean,
  ): PeerStateChange {
    if (connection === undefined) {
      const state = isThere ? PeerState.UNHEALTHY : PeerState.REMOVED
      return create(PeerStateChangeSchema, { id, state })
    }
    const listeners = [...(this.#listeners.get(id) ?? [])]
    // The version as the router reported it: other routers do not dial a router whose version they
    // cannot parse.
    const { version } = connection.version
    return create(PeerStateChangeSchema, { id, version, state: PeerState.HEALTHY, listeners })
  }
}

function changesMessage(changes: PeerStateChange[]): OutboundMessage {
  const message = create(PeerStateChangesSchema, { changes })
  return {
    contentType: controlContentType.peerStateChange,
    body: toBinary(PeerStateChangesSchema, message),
  }
}

/**
 * The link listeners in a hello. The capabilities of the router determine the header key, because
 * older keys have other meanings as well.
 */
function listenersOfHello(headers: ChannelMessage['headers']): readonly LinkListener[] {
  const isNewer = readBitMask(headers, controlHeaderKey.capabilities).has(MULTI_CHANNEL)
  const bytes = headers.get(isNewer ? controlHeaderKey.listeners : legacyHelloHeaderKey.listeners)
  if (bytes === undefined) return []
  try {
    return listenersIn(bytes)
  } catch {
    // Other routers cannot dial a router without link listeners, but it can dial them.
    return []
  }
}

/** @throws when the bytes cannot be decoded. */
function listenersIn(bytes: Uint8Array): readonly LinkListener[] {
  const { schema, elementsMax } = messageBounds.updateLinkListeners
  // Checked here, because the list is a header in the hello, to which the limits of message bodies
  // do not apply.
  const fault = protobufBodyFault(schema ?? LinkListenersSchema, bytes, elementsMax)
  if (fault !== null) throw new Error(fault)
  const isBounded = (text: string): boolean => text.length <= routerTextCharactersMax
  return fromBinary(LinkListenersSchema, bytes)
    .listeners.slice(0, linkListenersMax)
    .filter(
      ({ address, protocol, localBinding, groups }) =>
        [address, protocol, localBinding, ...groups].every(isBounded) &&
        groups.length <= linkListenersMax,
    )
}
