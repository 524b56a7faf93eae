import { TerminatorFault } from '../../../proto/gen/router_pb.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import { createTerminatorValidator } from '../controllers/terminator-validator.ts'
import type { ControlConnection, ControlMessageTable } from '../controllers/control-connection.ts'
import type { ControllerRequestLimiter } from '../controllers/controller-request-limiter.ts'
import type { TargetSocketLimiter } from '../../overlay/sockets/target-socket-limiter.ts'
import type { LocalCircuits, TerminatorDialer } from '../../overlay/circuits/circuit-endpoint.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import { CircuitRequester } from '../listen/circuit-requester.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { RouterDataModel } from '../model/router-data-model.ts'
import { ANY_ADDRESS, parseConfiguredService } from '../../overlay/services/proxy-port-manager.ts'
import { TunnelTerminatorPublisher } from './tunnel-terminator-publisher.ts'
import {
  emptyCircuitData,
  createTunnelCircuitCodec,
} from '../../overlay/services/tunnel-circuit-codec.ts'
import { TunnelServiceManager } from '../../overlay/tunnel-service-manager.ts'
import type { UsableServices } from '../../overlay/services/usable-services.ts'

interface RouterTunnelDeps {
  /** Options of the configured listener with the binding `tunnel`. */
  readonly options: Readonly<Record<string, unknown>>
  readonly identity: () => RouterIdentity
  readonly model: RouterDataModel
  readonly circuits: LocalCircuits
  readonly sockets: TargetSocketLimiter
  readonly connections: () => readonly ControlConnection[]
  readonly operations: ControllerRequestLimiter
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  /**
   * Addresses of controllers and other routers; this host must not intercept them for a service.
   */
  readonly neededAddresses: () => readonly string[]
}

/** The binding of the tunnel's terminators. */
export const TUNNEL_BINDING = 'tunnel'

/**
 * The router's tunnel: dials and hosts services with the permissions of the router's own identity.
 */
export class RouterTunnel {
  readonly #deps: RouterTunnelDeps
  readonly #offers: TunnelTerminatorPublisher
  readonly #services: TunnelServiceManager
  #unfollow: (() => void) | null = null

  constructor(deps: RouterTunnelDeps) {
    this.#deps = deps
    const { options, identity, model, connections, clock } = deps
    const identityId = identity().id
    const configured = options['services'] as readonly string[]
    this.#offers = new TunnelTerminatorPublisher(deps)
    this.#services = new TunnelServiceManager({
      ...deps,
      identityId,
      services: servicesInModel(model, identityId),
      configured: configured.flatMap((text) => parseConfiguredService(text) ?? []),
      anyAddress: ANY_ADDRESS,
      terminators: this.#offers,
      hasKeyPerTerminator: false,
      requests: new CircuitRequester({
        connections,
        clock,
        exchange: (service, _client, circuitData = emptyCircuitData) =>
          createTunnelCircuitCodec(service, circuitData),
      }),
    })
  }

  get dialer(): TerminatorDialer {
    return this.#services.dialer
  }

  /** @throws {ProgramFailure} when this machine does not allow mode `tproxy`. */
  async start(): Promise<void> {
    this.#unfollow = this.#deps.model.onChanged(() => this.#services.refresh())
    await this.#services.start()
  }

  messages(): ControlMessageTable {
    return createTerminatorValidator(
      (binding) => binding === TUNNEL_BINDING,
      ({ id }) => (this.#services.isHosted(id) ? null : TerminatorFault.UNKNOWN_TERMINATOR),
    )
  }

  onConnected(): void {
    this.#offers.onConnected()
    // Protects the addresses of the controllers again, because a controller may have a new address,
    // which must not be intercepted for a service.
    this.#services.protectAddresses()
  }

  /** Hosted, offered and intercepted services, for inspections. */
  shown(): object {
    const established = new Set(
      this.#offers.offers.filter(({ isEstablished }) => isEstablished).map(({ id }) => id),
    )
    return {
      mode: this.#services.mode,
      entries: this.#offers.offers.map(({ id }) => ({
        id,
        state: established.has(id) ? 'established' : 'establishing',
      })),
      ...this.#services.shown(),
    }
  }

  figures(): Readonly<Record<string, number>> {
    return this.#services.figures()
  }

  async stop(): Promise<void> {
    this.#unfollow?.()
    this.#offers.stop()
    await this.#services.stop()
  }
}

/** @returns null if no tunnel is configured. */
export function createTunnel(
  listeners: RouterConfig['listeners'],
  deps: Omit<RouterTunnelDeps, 'options'>,
): RouterTunnel | null {
  const listener = listeners.find(({ binding }) => binding === TUNNEL_BINDING)
  return listener === undefined ? null : new RouterTunnel({ ...deps, options: listener.options })
}

/** The services that an identity may use, according to the router's data model. */
function servicesInModel(model: RouterDataModel, identityId: string): UsableServices {
  return {
    identity: () => model.contents.identities.get(identityId),
    idsOf: (type) => model.servicesOf(identityId, type),
    service: (id) => model.contents.services.get(id),
    configsOf: (service) =>
      model.contents.configsOf(service, model.contents.identities.get(identityId)),
  }
}
