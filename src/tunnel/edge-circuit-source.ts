import { errorMessage } from '../lib/error-code.ts'
import type { LocalCircuit } from '../overlay/circuits/circuit-endpoint.ts'
import {
  type CircuitSource,
  CircuitUnavailableError,
  type CircuitData,
} from '../overlay/circuits/circuit-source.ts'
import { edgeErrorCode } from '../channel/messages/edge.ts'
import { emptyCircuitData } from '../overlay/services/tunnel-circuit-codec.ts'
import type { TunnelCounts } from './tunnel-counts.ts'
import { type EdgeChannel, EdgeRefusal } from './edge-channel.ts'
import type { EdgeCircuits } from './edge-circuits.ts'
import type { FollowedServices } from './followed-services.ts'
import { tunnelLimits } from './limits.ts'
import type { OpenedServiceSession, ServiceSessionCache } from './service-session-cache.ts'

interface EdgeCircuitSourceDeps {
  readonly services: Pick<FollowedServices, 'idNamed'>
  readonly sessions: Pick<ServiceSessionCache, 'of' | 'forget'>
  readonly circuits: Pick<EdgeCircuits, 'abandon'>
  readonly counts: Pick<TunnelCounts, 'dials'>
  /** Connected edge routers, nearest first. */
  readonly routers: () => readonly EdgeChannel[]
  readonly clock: { readonly monotonicMs: () => number }
}

interface Asked {
  readonly serviceId: string
  readonly circuitData: CircuitData
  readonly deadlineMs: number
}

/** Requests circuits from edge routers, nearest first. */
export class EdgeCircuitSource implements CircuitSource {
  readonly #deps: EdgeCircuitSourceDeps
  #dials = 0

  constructor(deps: EdgeCircuitSourceDeps) {
    this.#deps = deps
  }

  async request(
    service: string,
    _client: string,
    timeoutMs: number,
    circuitData: CircuitData = emptyCircuitData,
  ): Promise<LocalCircuit> {
    const { dials } = this.#deps.counts
    try {
      const circuit = await this.#requestFor(service, timeoutMs, circuitData)
      dials.add(service, 'success')
      return circuit
    } catch (error) {
      const isRefused = error instanceof Error && error.cause instanceof EdgeRefusal
      dials.add(service, isRefused ? 'refused' : 'failed')
      throw error
    }
  }

  async #requestFor(
    service: string,
    timeoutMs: number,
    circuitData: CircuitData,
  ): Promise<LocalCircuit> {
    const { services, clock } = this.#deps
    const serviceId = services.idNamed(service)
    if (serviceId === undefined) throw new CircuitUnavailableError('the identity may not dial it')
    if (this.#dials >= tunnelLimits.dialsMax) {
      throw new CircuitUnavailableError('too many circuits are requested')
    }
    this.#dials += 1
    try {
      const deadlineMs = clock.monotonicMs() + timeoutMs
      return await this.#request({ serviceId, circuitData, deadlineMs })
    } finally {
      this.#dials -= 1
    }
  }

  async #request(asked: Asked): Promise<LocalCircuit> {
    const { sessions } = this.#deps
    const session = await this.#session(asked)
    try {
      return await this.#byAnyRouter(asked, session)
    } catch (error) {
      if (!(error instanceof EdgeRefusal) || error.code !== edgeErrorCode.invalidSession) {
        throw unavailable(error)
      }
      // Drops the cached session, because it may have ended, for example after a policy change.
      sessions.forget(asked.serviceId, 'Dial')
      const other = await this.#session(asked)
      return await this.#byAnyRouter(asked, other).catch((fault: unknown) => {
        throw unavailable(fault)
      })
    }
  }

  async #session({ serviceId }: Asked): Promise<OpenedServiceSession> {
    try {
      return await this.#deps.sessions.of(serviceId, 'Dial')
    } catch (error) {
      throw new CircuitUnavailableError(`no service session: ${errorMessage(error)}`)
    }
  }

  async #byAnyRouter(asked: Asked, session: OpenedServiceSession): Promise<LocalCircuit> {
    const { routers, clock } = this.#deps
    const usable = routers().filter(({ routerName }) => session.routers.has(routerName))
    let reason = noRouterFor(session)
    for (const router of usable) {
      const leftMs = Math.round(asked.deadlineMs - clock.monotonicMs())
      if (leftMs <= 0) break
      try {
        return await this.#by(router, asked, session, leftMs)
      } catch (error) {
        reason = errorMessage(error)
        // A refusal is final, and so is any error of an edge router that is still connected, such
        // as a timeout. If the edge router has disconnected, tries the next one.
        if (error instanceof EdgeRefusal || router.isOpen) throw error
      }
    }
    // Drops the cached session: it lists only the edge routers that existed when it was created,
    // and the next dial requests a new session.
    if (usable.length === 0) this.#deps.sessions.forget(asked.serviceId, 'Dial')
    throw new CircuitUnavailableError(reason)
  }

  async #by(
    router: EdgeChannel,
    { serviceId, circuitData }: Asked,
    { token }: OpenedServiceSession,
    timeoutMs: number,
  ): Promise<LocalCircuit> {
    const made = await router.connect({ token, sharer: `to ${serviceId}` }, circuitData, timeoutMs)
    const { id, address, controllerId, peerData } = made
    const circuit = { id, address, owner: { id: controllerId }, isTerminator: false }
    let fault: string | null
    try {
      fault = circuitData.take(circuit, peerData)
    } catch (error) {
      fault = errorMessage(error)
    }
    if (fault === null) return circuit
    this.#deps.circuits.abandon(circuit)
    throw new CircuitUnavailableError(fault)
  }
}

function noRouterFor({ routers }: OpenedServiceSession): string {
  const names = [...routers].slice(0, 8).join(', ')
  return names === ''
    ? 'no edge router of the service is online: check its service edge router policies, and the edge router policies of the identity'
    : `none of its edge routers is connected: ${names}`
}

function unavailable(error: unknown): CircuitUnavailableError {
  return error instanceof CircuitUnavailableError
    ? error
    : new CircuitUnavailableError(errorMessage(error), { cause: error })
}
