import { fromBinary } from '@bufbuild/protobuf'

import { ConnectEventsSchema } from '../../../proto/gen/router_pb.ts'
import type { RouterDuty } from '../duty.ts'
import { routerLimits } from '../limits.ts'
import { routerMessage } from '../messages.ts'

const { routerClientsMax } = routerLimits

/** Which identities have a connection to an edge router, as those routers tell each controller that they are connected to. */
export class ConnectionDuty implements RouterDuty {
  readonly handlers: RouterDuty['handlers']
  readonly #byRouter = new Map<string, Set<string>>()
  /** Routers that each identity is connected to. */
  readonly #counts = new Map<string, number>()

  constructor() {
    this.handlers = new Map([
      [
        routerMessage.connectEvents,
        ({ router }, { body }) => {
          const { events, fullState } = fromBinary(ConnectEventsSchema, body)
          if (fullState) this.#forget(router.id)
          for (const { identityId, isConnected } of events) {
            if (isConnected) this.#add(router.id, identityId)
            else this.#remove(router.id, identityId)
          }
        },
      ],
    ])
  }

  isConnected(identityId: string): boolean {
    return this.#counts.has(identityId)
  }

  onDisconnected({ router }: { readonly router: { readonly id: string } }): void {
    this.#forget(router.id)
  }

  #add(routerId: string, identityId: string): void {
    let own = this.#byRouter.get(routerId)
    if (own === undefined) this.#byRouter.set(routerId, (own = new Set()))
    if (own.size >= routerClientsMax || own.has(identityId) || identityId.length > 128) return
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
