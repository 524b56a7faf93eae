import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { ControlConnection, ControlMessageTable } from '../controllers/control-connection.ts'
import type { ControllerOperations } from '../controllers/controller-operations.ts'
import type { TargetSockets } from '../dial/target-sockets.ts'
import type { LocalCircuits, TerminatorDialer } from '../forward/circuit-ends.ts'
import { xgressOptions } from '../forward/xgress-options.ts'
import type { RouterIdentity } from '../identity/identity.ts'
import { routerProgramLimits } from '../limits.ts'
import type { RouterProgramLogger } from '../logger.ts'
import type { RouterDataModel } from '../model/router-data-model.ts'
import { interceptOptions } from '../intercept/intercept-options.ts'
import { InterceptedServices } from '../intercept/intercepted-services.ts'
import { HostedServices } from './hosted-services.ts'
import { configuredService, OfferedServices } from './offered-services.ts'
import { cryptoReady } from './secure-stream.ts'
import { TerminatorOffers } from './terminator-offers.ts'
import { TunnelDialer } from './tunnel-dialer.ts'
import {
  readTunnelValidation,
  tunnelTerminatorStatesMessage,
  tunnelMessage,
} from './tunnel-messages.ts'

export interface TunnelParts {
  /** Options of the listener with the binding `tunnel`. */
  readonly options: Readonly<Record<string, unknown>>
  readonly identity: () => RouterIdentity
  readonly model: RouterDataModel
  readonly circuits: LocalCircuits
  readonly sockets: TargetSockets
  readonly connections: () => readonly ControlConnection[]
  readonly operations: ControllerOperations
  readonly clock: Clock
  readonly random: Random
  readonly log: RouterProgramLogger
  /** Addresses of controllers and other routers, which no service may take over at this host. */
  readonly neededAddresses: () => readonly string[]
}

/** The binding of its terminators. */
export const TUNNEL_BINDING = 'tunnel'

/**
 * The router as an end of circuits, by the right of its own identity: it hosts services whose
 * targets it connects to. In mode `proxy` it offers others at ports of this host, and in mode
 * `tproxy` it takes over connections of this host to their addresses and names.
 */
export class Tunnel {
  readonly #parts: TunnelParts
  readonly #offers: TerminatorOffers
  readonly #hosted: HostedServices
  readonly #offered: OfferedServices | null
  readonly #intercepted: InterceptedServices | null
  readonly dialer: TerminatorDialer
  #unfollow: (() => void) | null = null

  constructor(parts: TunnelParts) {
    this.#parts = parts
    const { options, identity, circuits, sockets } = parts
    const identityId = identity().id
    const idleMs = Number(options['udpIdleTimeout'] ?? 0)
    const datagramsIdleMs = idleMs > 0 ? idleMs : routerProgramLimits.datagramsIdleMs
    this.#offers = new TerminatorOffers(parts)
    this.#hosted = new HostedServices({ ...parts, offers: this.#offers, identityId })
    const flow = xgressOptions(options)
    this.dialer = new TunnelDialer({
      circuits,
      sockets,
      flow,
      datagramsIdleMs,
      terminator: (id) => this.#hosted.terminator(id),
    })
    const services = options['services'] as readonly string[]
    const circuitTimeoutMs = Number(options['getCircuitTimeout'])
    const shared = { ...parts, flow, identityId, circuitTimeoutMs, datagramsIdleMs }
    this.#offered =
      this.#mode === 'proxy'
        ? new OfferedServices({
            ...shared,
            configured: services.flatMap((text) => configuredService(text) ?? []),
          })
        : null
    this.#intercepted =
      this.#mode === 'tproxy'
        ? new InterceptedServices({ ...shared, ...interceptOptions(options, parts.random) })
        : null
  }

  get #mode(): string {
    return String(this.#parts.options['mode']).split(':')[0] ?? ''
  }

  /** @throws {RouterFailure} when this machine does not allow mode `tproxy`. */
  async start(): Promise<void> {
    await cryptoReady()
    await this.#intercepted?.start()
    this.#unfollow = this.#parts.model.onChanged(() => this.#onModel())
    this.#offered?.start()
    this.#onModel()
  }

  messages(): ControlMessageTable {
    return new Map([
      [
        tunnelMessage.validateTerminators,
        ({ channel }, { body }) => {
          const asked = readTunnelValidation(body).filter(
            ({ binding }) => binding === TUNNEL_BINDING,
          )
          if (asked.length === 0) return
          const isHosted = (id: string) => this.#hosted.terminator(id) !== undefined
          channel.send(tunnelTerminatorStatesMessage(asked, isHosted))
        },
      ],
    ])
  }

  onConnected(): void {
    this.#offers.onConnected()
    // It may be a controller whose address no service may take.
    this.#intercepted?.refresh()
  }

  /** Services that it hosts, offers and intercepts, for inspections. */
  shown(): object {
    const established = new Set(
      this.#offers.offers.filter(({ isEstablished }) => isEstablished).map(({ id }) => id),
    )
    return {
      mode: this.#mode,
      entries: this.#offers.offers.map(({ id }) => ({
        id,
        state: established.has(id) ? 'established' : 'establishing',
      })),
      hosted: this.#hosted.services,
      offered: this.#offered?.entries ?? [],
      intercepted: this.#intercepted?.entries ?? [],
    }
  }

  figures(): Readonly<Record<string, number>> {
    return this.#intercepted?.figures() ?? {}
  }

  async stop(): Promise<void> {
    this.#unfollow?.()
    this.#offers.stop()
    this.#hosted.stop()
    await this.#offered?.stop()
    await this.#intercepted?.stop()
  }

  /** A model that has not come yet says nothing; one that was lost takes everything. */
  #onModel(): void {
    this.#hosted.refresh()
    this.#offered?.refresh()
    this.#intercepted?.refresh()
  }
}

/** @returns null: the router is configured without one. */
export function tunnelOf(
  listeners: RouterConfig['listeners'],
  parts: Omit<TunnelParts, 'options'>,
): Tunnel | null {
  const listener = listeners.find(({ binding }) => binding === TUNNEL_BINDING)
  return listener === undefined ? null : new Tunnel({ ...parts, options: listener.options })
}
