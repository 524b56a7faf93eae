import { ConnectEventsSchema, type IdentityConnection } from '../../../proto/gen/router_pb.ts'
import { decodeIncrementally } from '../../channel/wire-scan.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import { copyPrefix } from '../../lib/text/copy-prefix.ts'
import { type ObservationSink, discardObservation } from '../../ports/observations.ts'
import { routerLimits } from '../limits.ts'
import { controlContentType } from '../../channel/messages/control.ts'
import { reportedTimeMs } from '../reported-time.ts'
import { addToSet, removeFromSet } from '../../lib/keyed-sets.ts'

const { identityConnectsMax, routerClientsMax, routerTextCharactersMax } = routerLimits

const ID_CHARACTERS_MAX = 128

/**
 * Tracks which identities are connected to edge routers, as the routers that are connected to this
 * controller report it.
 */
export class ConnectionHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers']
  readonly #byRouter = new Map<string, Set<string>>()
  /** Number of routers to which each identity is connected, by identity ID. */
  readonly #counts = new Map<string, number>()

  readonly #publishFact: ObservationSink

  /**
   * @param publishFact publishes an event for the first connect and the last disconnect of an
   * identity, and for each newly reported connection.
   */
  constructor(publishFact: ObservationSink = discardObservation) {
    this.#publishFact = publishFact
    this.handlers = new Map([
      [controlContentType.connectEvents, ({ router }, { body }) => this.#take(router.id, body)],
    ])
  }

  /** IDs of the routers to which each identity is connected. */
  byIdentity(): ReadonlyMap<string, readonly string[]> {
    const found = new Map<string, string[]>()
    for (const [routerId, identityIds] of this.#byRouter) {
      for (const id of identityIds) {
        const known = found.get(id)
        if (known === undefined) found.set(id, [routerId])
        else known.push(routerId)
      }
    }
    return found
  }

  isConnected(identityId: string): boolean {
    return this.#counts.has(identityId)
  }

  onDisconnected({ router }: { readonly router: { readonly id: string } }): void {
    for (const id of Array.from(this.#byRouter.get(router.id) ?? [])) this.#remove(router.id, id)
    this.#byRouter.delete(router.id)
  }

  *#take(routerId: string, body: Uint8Array): Generator<void, void> {
    const { events, fullState } = yield* decodeIncrementally(ConnectEventsSchema, body)
    const known = new Set(fullState ? this.#byRouter.get(routerId) : [])
    const connected = new Set<string>()
    for (const { identityId, isConnected } of fullState ? events : []) {
      if (isConnected) connected.add(identityId)
      yield
    }
    for (const identityId of known) {
      if (!connected.has(identityId)) this.#remove(routerId, identityId)
      yield
    }
    for (const { identityId, isConnected, connectTimes } of events) {
      if (!isConnected) this.#remove(routerId, identityId)
      else {
        this.#add(routerId, identityId)
        // A full report repeats known connections, so its connects are published only for
        // identities that were not known. A partial report publishes all its connects, because
        // `known` is empty.
        if (!known.has(identityId)) this.#publishConnects(routerId, identityId, connectTimes)
      }
      yield
    }
  }

  #publishConnects(
    routerId: string,
    identityId: string,
    connects: readonly IdentityConnection[],
  ): void {
    if (identityId.length > ID_CHARACTERS_MAX) return
    for (const { connectTime, srcAddr, dstAddr } of connects.slice(0, identityConnectsMax)) {
      const atMs = reportedTimeMs(connectTime)
      this.#publishFact({
        kind: 'connect',
        source: { type: 'identity', id: identityId },
        sourceAddress: copyPrefix(srcAddr, routerTextCharactersMax),
        target: { type: 'router', id: routerId },
        targetAddress: copyPrefix(dstAddr, routerTextCharactersMax),
        ...(atMs === null ? {} : { atMs }),
      })
    }
  }

  #add(routerId: string, identityId: string): void {
    const own = this.#byRouter.get(routerId)
    if ((own?.size ?? 0) >= routerClientsMax || own?.has(identityId) === true) return
    if (identityId.length > ID_CHARACTERS_MAX) return
    addToSet(this.#byRouter, routerId, identityId)
    const others = this.#counts.get(identityId) ?? 0
    this.#counts.set(identityId, others + 1)
    if (others === 0) this.#publishFact({ kind: 'sdk', identityId, status: 'online' })
  }

  #remove(routerId: string, identityId: string): void {
    if (!removeFromSet(this.#byRouter, routerId, identityId)) return
    const left = (this.#counts.get(identityId) ?? 1) - 1
    if (left > 0) this.#counts.set(identityId, left)
    else {
      this.#counts.delete(identityId)
      this.#publishFact({ kind: 'sdk', identityId, status: 'offline' })
    }
  }
}
