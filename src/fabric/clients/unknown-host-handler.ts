import { terminatorCreateResponse } from '../../channel/messages/terminators.ts'
import type { HostedTerminators } from '../../ports/hosted-terminators.ts'
import type { RouterInspections } from '../../ports/router-inspections.ts'
import type { ChannelHandler } from '../channel-handler.ts'
import type { RouterLogger } from '../router-channels.ts'
import type { RouterConnection } from '../router-connection.ts'
import { refusedTerminator } from './client-access-faults.ts'

const INSPECTED = 'sdk-terminators'
/** Maximum number of refusals that are sent before other work runs. */
const SLICE = 50

export interface UnknownHostHandlerDeps {
  readonly terminators: Pick<HostedTerminators, 'ofRouter'>
  readonly inspect: RouterInspections['inspect']
  readonly isLeader: () => boolean
  readonly log: RouterLogger
}

/**
 * Makes clients host their services again after a migration or a restore, when a router still hosts
 * services for clients, and the state contains none of its terminators for clients (ADR 64).
 */
export class UnknownHostHandler implements ChannelHandler {
  readonly handlers: ChannelHandler['handlers'] = new Map()
  readonly #deps: UnknownHostHandlerDeps

  constructor(deps: UnknownHostHandlerDeps) {
    this.#deps = deps
  }

  onConnected(connection: RouterConnection): void {
    // Routers of OpenZiti 1 do not pass the retry hint of a refusal to their clients.
    if (connection.isOpenZitiV1 || !this.#knowsNone(connection)) return
    void this.#refuse(connection)
  }

  #knowsNone({ router }: RouterConnection): boolean {
    const { isLeader, terminators } = this.#deps
    if (!isLeader()) return false
    for (const { binding } of terminators.ofRouter(router.id)) if (binding === 'edge') return false
    return true
  }

  async #refuse(connection: RouterConnection): Promise<void> {
    const { router, channel } = connection
    const { values } = await this.#deps.inspect(router.id, [INSPECTED])
    const found = values.find(({ name }) => name === INSPECTED)
    const ids = hostedIds(found?.value)
    if (ids.length === 0 || !this.#knowsNone(connection)) return
    const fields = { routerId: router.id, terminators: ids.length }
    this.#deps.log.info(fields, 'the clients of a router must host their services again')
    for (const [at, id] of ids.entries()) {
      if (at % SLICE === SLICE - 1) await new Promise((go) => setImmediate(go))
      if (channel.isClosed) return
      channel.send(terminatorCreateResponse(id, refusedTerminator('session')))
    }
  }
}

/**
 * IDs of the terminators in a router's inspection value, without those whose creation is in
 * progress, because a controller decides about these when the router requests them.
 */
function hostedIds(value: unknown): string[] {
  const { entries } = (value ?? {}) as { readonly entries?: unknown }
  if (!Array.isArray(entries)) return []
  return entries.flatMap((entry: unknown) => {
    const { id, operationActive } = (entry ?? {}) as Readonly<Record<string, unknown>>
    return typeof id === 'string' && id !== '' && operationActive !== true ? [id] : []
  })
}
