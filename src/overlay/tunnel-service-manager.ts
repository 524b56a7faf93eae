import type { Clock } from '../lib/clock.ts'
import type { Random } from '../lib/random.ts'
import type { TargetSocketLimiter } from './sockets/target-socket-limiter.ts'
import type { LocalCircuits, TerminatorDialer } from './circuits/circuit-endpoint.ts'
import { xgressOptions } from './circuits/xgress-options.ts'
import { interceptOptions } from './intercept/intercept-options.ts'
import { TproxyInterceptor } from './intercept/tproxy-interceptor.ts'
import { socketLimits } from './sockets/limits.ts'
import type { CircuitSource } from './circuits/circuit-source.ts'
import type { ProgramLogger } from './logger.ts'
import {
  HostedServiceManager,
  type TerminatorPublisher,
} from './services/hosted-service-manager.ts'
import { type ConfiguredServicePort, ProxyPortManager } from './services/proxy-port-manager.ts'
import { loadCryptoLibrary } from './services/secure-stream.ts'
import { TunnelDialer } from './services/tunnel-dialer.ts'
import type { UsableServices } from './services/usable-services.ts'

interface TunnelServiceManagerDeps {
  /** Options of a listener with the binding `tunnel`. */
  readonly options: Readonly<Record<string, unknown>>
  readonly identityId: string
  readonly services: UsableServices
  /** Ports of services in mode `proxy`. */
  readonly configured: readonly ConfiguredServicePort[]
  /** Address on which to listen if the config of a service has none. */
  readonly anyAddress: string
  readonly terminators: TerminatorPublisher
  /** Whether a terminator has one key for all clients, instead of a key for each circuit. */
  readonly hasKeyPerTerminator: boolean
  readonly requests: CircuitSource
  readonly circuits: Pick<LocalCircuits, 'open'>
  readonly sockets: TargetSocketLimiter
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  /** Addresses of controllers and routers; this host must not intercept them for a service. */
  readonly neededAddresses: () => readonly string[]
}

/**
 * Manages the services that one identity uses on this host. The identity hosts services by
 * connecting to their targets. In mode `proxy`, the tunnel offers services on ports of this host;
 * in mode `tproxy`, it intercepts connections of this host to the addresses and names of services.
 */
export class TunnelServiceManager {
  readonly mode: string
  readonly dialer: TerminatorDialer
  readonly #hosted: HostedServiceManager
  readonly #offered: ProxyPortManager | null
  readonly #intercepted: TproxyInterceptor | null

  constructor(deps: TunnelServiceManagerDeps) {
    const { options, circuits, sockets } = deps
    this.mode = String(options['mode']).split(':')[0] ?? ''
    const idleMs = Number(options['udpIdleTimeout'] ?? 0)
    const datagramsIdleMs = idleMs > 0 ? idleMs : socketLimits.datagramsIdleMs
    this.#hosted = new HostedServiceManager(deps)
    const flow = xgressOptions(options)
    this.dialer = new TunnelDialer({
      circuits,
      sockets,
      flow,
      datagramsIdleMs,
      terminator: (id) => this.#hosted.terminator(id),
    })
    const circuitTimeoutMs = Number(options['getCircuitTimeout'])
    const shared = { ...deps, flow, circuitTimeoutMs, datagramsIdleMs }
    this.#offered = this.mode === 'proxy' ? new ProxyPortManager(shared) : null
    this.#intercepted =
      this.mode === 'tproxy'
        ? new TproxyInterceptor({ ...shared, ...interceptOptions(options, deps.random) })
        : null
  }

  /** @throws {ProgramFailure} if this machine does not permit mode `tproxy`. */
  async start(): Promise<void> {
    await loadCryptoLibrary()
    await this.#intercepted?.start()
    this.#offered?.start()
    this.refresh()
  }

  /** Updates all services according to what the identity may use now. */
  refresh(): void {
    this.#hosted.refresh()
    this.#offered?.refresh()
    this.#intercepted?.refresh()
  }

  /** Checks the services again, because more addresses may be protected now. */
  protectAddresses(): void {
    this.#intercepted?.refresh()
  }

  isHosted(terminatorId: string): boolean {
    return this.#hosted.terminator(terminatorId) !== undefined
  }

  /** Hosted, offered and intercepted services, for inspections. */
  shown(): { readonly hosted: object; readonly offered: object; readonly intercepted: object } {
    return {
      hosted: this.#hosted.services,
      offered: this.#offered?.entries ?? [],
      intercepted: this.#intercepted?.entries ?? [],
    }
  }

  figures(): Readonly<Record<string, number>> {
    return this.#intercepted?.figures() ?? {}
  }

  async stop(): Promise<void> {
    this.#hosted.stop()
    await this.#offered?.stop()
    await this.#intercepted?.stop()
  }
}
