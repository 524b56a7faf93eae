import type { RouterConfig } from '../../config/router/table.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import type { LocalCircuits } from '../../overlay/circuits/circuit-endpoint.ts'
import { xgressOptions } from '../../overlay/circuits/xgress-options.ts'
import type { RouterIdentity } from '../identity/reloadable-identity.ts'
import { socketLimits } from '../../overlay/sockets/limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { CircuitRequester } from './circuit-requester.ts'
import { DatagramListener } from '../../overlay/sockets/datagram-listener.ts'
import { RateLimitedWarningLog } from '../../overlay/sockets/rate-limited-warning-log.ts'
import { type ListenerDeps, StreamListener } from '../../overlay/sockets/stream-listener.ts'

type ListenerConfig = RouterConfig['listeners'][number]

export interface ClientListenersDeps {
  readonly config: RouterConfig['listeners']
  readonly handshakeTimeoutMs: number
  readonly circuits: LocalCircuits
  readonly connections: () => readonly ControlConnection[]
  readonly identity: () => RouterIdentity
  readonly clock: Clock
  readonly log: ProgramLogger
}

const bindings = ['transport', 'proxy', 'transport_udp', 'proxy_udp']

/**
 * Listeners for clients that use no SDK. For each connection, they request a circuit to the
 * configured service or, with the bindings `transport` and `transport_udp`, to the service that the
 * client names.
 */
export class ClientListeners {
  readonly #deps: ClientListenersDeps
  readonly #streams: StreamListener[] = []
  readonly #datagrams: DatagramListener[] = []

  constructor(deps: ClientListenersDeps) {
    this.#deps = deps
  }

  /** Ports of the TCP and TLS listeners. */
  get ports(): ReadonlySet<number> {
    return new Set(this.#streams.map(({ port }) => port))
  }

  /** @throws {ProgramFailure} with the configuration path. */
  async start(): Promise<void> {
    const { config, circuits, log, clock } = this.#deps
    const requests = new CircuitRequester(this.#deps)
    const failures = new RateLimitedWarningLog(log, clock)
    for (const [at, listener] of config.entries()) {
      const { binding, bind, service, options } = listener
      const place = `listeners[${at}]`
      if (!bindings.includes(binding) || bind === null) continue
      await this.#open(listener, {
        place,
        bind,
        service: binding.startsWith('proxy') ? service : null,
        circuitTimeoutMs: Number(options['getCircuitTimeout']),
        circuits,
        flow: xgressOptions(options),
        requests,
        failures,
      })
      log.info({ binding, address: bind.text, service }, 'listening for clients')
    }
  }

  renew(): void {
    for (const listener of this.#streams) listener.renew()
  }

  /** Ends all circuits that these listeners created. */
  async stop(): Promise<void> {
    const all = [...this.#streams, ...this.#datagrams]
    await Promise.all(all.map((listener) => listener.close()))
  }

  async #open({ binding }: ListenerConfig, deps: ListenerDeps): Promise<void> {
    if (binding.endsWith('_udp')) {
      const { datagramsIdleMs } = socketLimits
      const listener = new DatagramListener({ ...deps, idleMs: datagramsIdleMs })
      await listener.listen()
      this.#datagrams.push(listener)
    } else {
      const listener = new StreamListener({ ...this.#deps, ...deps })
      await listener.listen()
      this.#streams.push(listener)
    }
  }
}
