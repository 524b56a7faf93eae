import type { VersionLine } from '../channel/hello.ts'
import type { CachedResolver } from '../lib/runtime/cached-resolver.ts'
import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { TargetSocketLimiter } from '../overlay/sockets/target-socket-limiter.ts'
import type { ProgramLogger } from '../overlay/logger.ts'
import type { ConfiguredServicePort } from '../overlay/services/proxy-port-manager.ts'
import { TunnelServiceManager } from '../overlay/tunnel-service-manager.ts'
import { IdentityCertificateRenewer } from './identity-certificate-renewer.ts'
import type { ControllerApi } from './controller-api.ts'
import { TunnelCounts } from './tunnel-counts.ts'
import { EdgeCircuitSource } from './edge-circuit-source.ts'
import { EdgeCircuits } from './edge-circuits.ts'
import { EdgeRouterConnector } from './edge-router-connector.ts'
import { EdgeTerminatorPublisher } from './edge-terminator-publisher.ts'
import { FollowedServices } from './followed-services.ts'
import type { IdentityCertificate } from './identity-certificate.ts'
import { IdentitySession } from './identity-session.ts'
import { ServiceSessionCache } from './service-session-cache.ts'
import type { TunnelMetricValues } from './tunnel-metrics.ts'

interface IdentityTunnelDeps {
  /** The same options as for a router listener with the binding `tunnel`. */
  readonly options: Readonly<Record<string, unknown>>
  readonly configured: readonly ConfiguredServicePort[]
  /** Address to listen on for services whose config contains no address. */
  readonly anyAddress: string
  readonly certificate: IdentityCertificate
  /** True: renews the certificate at the start, even if renewal is not due. */
  readonly renewsAtStart?: boolean
  readonly api: ControllerApi
  /** `https://host:port` of the controller at which the identity enrolled. */
  readonly origin: string
  readonly sockets: TargetSocketLimiter
  readonly version: VersionLine
  /** Caches the last known addresses of controllers and edge routers. */
  readonly names?: CachedResolver
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
}

/**
 * The tunnel of one enrolled identity on a host without a router. The tunnel hosts services, and
 * makes services available to local programs.
 */
export class IdentityTunnel {
  readonly #deps: IdentityTunnelDeps
  readonly #followed = new FollowedServices()
  readonly #counts = new TunnelCounts()
  readonly #sessions: ServiceSessionCache
  readonly #session: IdentitySession
  readonly #circuits: EdgeCircuits
  readonly #routers: EdgeRouterConnector
  readonly #terminators: EdgeTerminatorPublisher
  #services: TunnelServiceManager | null = null

  constructor(deps: IdentityTunnelDeps) {
    this.#deps = deps
    const { api, clock } = deps
    const counts = this.#counts
    const routers = () => this.#routers.open
    this.#sessions = new ServiceSessionCache({ api, clock })
    this.#circuits = new EdgeCircuits(clock)
    this.#session = new IdentitySession({
      ...deps,
      renewal: new IdentityCertificateRenewer({ ...deps, isForced: deps.renewsAtStart === true }),
      services: this.#followed,
      counts,
      onSession: () => this.#onSession(),
      onServices: () => this.#onServices(),
      onRouters: (places) => this.#routers.follow(places),
      knowsRouters: () => this.#routers.figures.length > 0,
    })
    this.#routers = new EdgeRouterConnector({
      ...deps,
      circuits: this.#circuits,
      counts,
      token: () => this.#session.token,
      onOpen: (routerName) => void this.#onRouter(routerName),
      onLost: () => {
        if (this.#routers.open.length === 0) this.#session.hurry()
      },
    })
    this.#terminators = new EdgeTerminatorPublisher({
      ...deps,
      sessions: this.#sessions,
      routers,
      counts,
      dialer: () => this.#running.dialer,
      serviceName: (id) => this.#followed.service(id)?.name ?? '',
    })
  }

  /**
   * Starts the tunnel; waits until a controller responds.
   * @throws {ProgramFailure} when the log-in is refused, or this machine does not support the mode.
   */
  async start(): Promise<void> {
    const identityId = await this.#session.open()
    if (identityId === null) return
    const { origin } = this.#deps
    const source = new EdgeCircuitSource({
      services: this.#followed,
      sessions: this.#sessions,
      circuits: this.#circuits,
      counts: this.#counts,
      routers: () => this.#routers.open,
      clock: this.#deps.clock,
    })
    const services = new TunnelServiceManager({
      ...this.#deps,
      identityId,
      services: this.#followed,
      terminators: this.#terminators,
      // Uses a separate key for each terminator, because OpenZiti edge routers send clients the key
      // in the bind request of that terminator.
      hasKeyPerTerminator: true,
      requests: source,
      circuits: this.#circuits,
      neededAddresses: () => [
        ...[origin, ...this.#session.controllers].map((each) => new URL(each).host),
        ...this.#routers.addresses,
      ],
    })
    await services.start()
    this.#services = services
    this.#routers.start()
    this.#terminators.start()
    this.#session.start()
  }

  async stop(): Promise<void> {
    this.#terminators.stop()
    await this.#services?.stop()
    this.#circuits.stop()
    this.#routers.stop()
    await this.#session.stop()
  }

  get figures(): TunnelMetricValues {
    return {
      counts: this.#counts,
      certificateNotAfterMs: this.#deps.certificate.notAfterMs,
      hasSession: this.#session.token !== null,
      knownControllers: this.#session.controllers.length,
      routers: this.#routers.figures,
      dialableServices: this.#followed.idsOf('Dial').size,
      hostableServices: this.#followed.idsOf('Bind').size,
      terminators: this.#terminators.figures,
      ...this.#circuits.figures,
    }
  }

  get #running(): TunnelServiceManager {
    if (this.#services === null) throw new Error('the tunnel is not started')
    return this.#services
  }

  #onSession(): void {
    this.#sessions.clear()
    this.#routers.renew()
  }

  #onServices(): void {
    const { Dial, Bind } = {
      Dial: this.#followed.idsOf('Dial'),
      Bind: this.#followed.idsOf('Bind'),
    }
    this.#sessions.keepOnly((id, type) => (type === 'Dial' ? Dial : Bind).has(id))
    this.#services?.refresh()
    this.#counts.dials.follow(this.#namesOf(Dial))
    this.#counts.hostedDials.follow(this.#namesOf(Bind))
    this.#deps.log.info({ dialable: Dial.size, hostable: Bind.size }, 'services followed')
  }

  #namesOf(ids: ReadonlySet<string>): readonly string[] {
    return Array.from(ids, (id) => this.#followed.service(id)?.name ?? '')
  }

  async #onRouter(routerName: string): Promise<void> {
    await this.#sessions.forgetWithout(routerName)
    this.#terminators.retry()
    // An edge router or controller may have a new address, which no service may intercept.
    this.#services?.protectAddresses()
  }
}
