import { fromBinary } from '@bufbuild/protobuf'

import { ConnectEventsSchema } from '../../../proto/gen/router_pb.ts'
import type { ConnectEvents, IdentityConnection } from '../../../proto/gen/router_pb.ts'
import type { RouterDuty } from '../duty.ts'
import { tellNobody } from '../../ports/live-facts.ts'
import type { TellFact } from '../../ports/live-facts.ts'
import { routerLimits } from '../limits.ts'
import { routerMessage } from '../messages.ts'

const { identityConnectsMax, routerClientsMax, routerTextCharactersMax } = routerLimits

const ID_CHARACTERS_MAX = 128
const TIME_MS_MAX = 8_640_000_000_000_000n

/**
 * Which identities have a connection to an edge router, as those routers tell each controller that
 * they are connected to.
 */
export class ConnectionDuty implements RouterDuty {
  readonly handlers: RouterDuty['handlers']
  readonly #byRouter = new Map<string, Set<string>>()
  /** Routers that each identity is connected to. */
  readonly #counts = new Map<string, number>()

  readonly #tell: TellFact

  /**
   * @param tell of identities that have their first connection, or have lost their last one, and of
   * each connection.
   */
  constructor(tell: TellFact = tellNobody) {
    this.#tell = tell
    this.handlers = new Map([
      [
        routerMessage.connectEvents,
        ({ router }, { body }) => {
          const report = fromBinary(ConnectEventsSchema, body)
          const known = [...(report.fullState ? (this.#byRouter.get(router.id) ?? []) : [])]
          this.#during([...known, ...report.events.map(({ identityId }) => identityId)], () =>
            this.#take(router.id, report),
          )
        },
      ],
    ])
  }

  isConnected(identityId: string): boolean {
    return this.#counts.has(identityId)
  }

  onDisconnected({ router }: { readonly router: { readonly id: string } }): void {
    const known = [...(this.#byRouter.get(router.id) ?? [])]
    this.#during(known, () => this.#forget(router.id))
  }

  #take(routerId: string, { events, fullState }: ConnectEvents): void {
    const known = new Set(fullState ? this.#byRouter.get(routerId) : [])
    if (fullState) this.#forget(routerId)
    for (const { identityId, isConnected, connectTimes } of events) {
      if (!isConnected) this.#remove(routerId, identityId)
      else {
        this.#add(routerId, identityId)
        // All connections told once more are no news.
        if (!known.has(identityId)) this.#tellConnects(routerId, identityId, connectTimes)
      }
    }
  }

  /** Tells whose first connection came, or whose last one went, meanwhile. */
  #during(identityIds: readonly string[], run: () => void): void {
    const before = new Map(identityIds.map((id) => [id, this.isConnected(id)]))
    run()
    for (const [identityId, was] of before) {
      const is = this.isConnected(identityId)
      if (is !== was) this.#tell({ kind: 'sdk', identityId, status: is ? 'online' : 'offline' })
    }
  }

  #tellConnects(
    routerId: string,
    identityId: string,
    connects: readonly IdentityConnection[],
  ): void {
    if (identityId.length > ID_CHARACTERS_MAX) return
    for (const { connectTime, srcAddr, dstAddr } of connects.slice(0, identityConnectsMax)) {
      this.#tell({
        ...{ kind: 'connect', source: { type: 'identity', id: identityId } },
        sourceAddress: srcAddr.slice(0, routerTextCharactersMax),
        target: { type: 'router', id: routerId },
        targetAddress: dstAddr.slice(0, routerTextCharactersMax),
        ...(isTime(connectTime) ? { atMs: Number(connectTime) } : {}),
      })
    }
  }

  #add(routerId: string, identityId: string): void {
    let own = this.#byRouter.get(routerId)
    if (own === undefined) this.#byRouter.set(routerId, (own = new Set()))
    if (
      own.size >= routerClientsMax ||
      own.has(identityId) ||
      identityId.length > ID_CHARACTERS_MAX
    )
      return
    own.add(identityId)
    this.#counts.set(identityId, (this.#counts.get(identityId) ?? 0) + 1)
  }

  #remove(routerId: string, identityId: string): void {
    if (this.#byRouter.get(routerId)?.delete(identityId) !== true) return
    const left = (this.#counts.get(identityId) ?? 1) - 1
    if (left > 0) this.#counts.set(identityId, left)
    else this.#counts.delete(identityId)
  }

  #forget(routerId: string): void {
    for (const identityId of [...(this.#byRouter.get(routerId) ?? [])]) {
      this.#remove(routerId, identityId)
    }
    this.#byRouter.delete(routerId)
  }
}

/** A router says when it was; not every number is a time. */
function isTime(ms: bigint): boolean {
  return ms > 0n && ms <= TIME_MS_MAX
}
