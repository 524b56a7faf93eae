import { networkInterfaces } from 'node:os'
import { isIPv4 } from 'node:net'

import type { ModelConfig } from '../../../proto/gen/router_pb.ts'
import { KeyedTasks } from '../../lib/keyed-tasks.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import type { Clock } from '../../lib/clock.ts'
import type { LocalCircuits } from '../circuits/circuit-endpoint.ts'
import type { XgressOptions } from '../circuits/xgress-options.ts'
import { serviceLimits } from './limits.ts'
import type { CircuitSource } from '../circuits/circuit-source.ts'
import { DatagramListener } from '../sockets/datagram-listener.ts'
import { RateLimitedWarningLog } from '../sockets/rate-limited-warning-log.ts'
import { StreamListener } from '../sockets/stream-listener.ts'
import type { ProgramLogger } from '../logger.ts'
import type { TunnelProtocol } from './host-config.ts'
import { SecureCircuitOpener } from './secure-circuit-opener.ts'
import type { UsableServices } from './usable-services.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

/** A service and its listening port, from the configuration of the tunnel. */
export interface ConfiguredServicePort {
  readonly name: string
  readonly port: number
  readonly protocol: TunnelProtocol
}

interface ProxyPortManagerDeps {
  readonly services: UsableServices
  readonly configured: readonly ConfiguredServicePort[]
  /** Address on which to listen for services whose config contains no address. */
  readonly anyAddress: string
  readonly circuits: Pick<LocalCircuits, 'open'>
  readonly requests: CircuitSource
  readonly flow: XgressOptions
  readonly circuitTimeoutMs: number
  readonly datagramsIdleMs: number
  readonly clock: Clock
  readonly log: ProgramLogger
}

/** A listening port for clients of a service. */
interface Entry {
  readonly serviceId: string
  readonly name: string
  readonly protocol: TunnelProtocol
  readonly address: string
  readonly port: number
}

interface Listener {
  readonly listen: () => Promise<void>
  readonly close: () => Promise<void>
}

/**
 * All addresses of this host. Hosts of services receive this text as `dst_ip`, even if the port has
 * another address.
 */
export const ANY_ADDRESS = '0.0.0.0'
const PROXY_CONFIG_TYPE = 'proxy.v1'
const SERVICE = /^(.+):([0-9]{1,5})(?::(tcp|udp))?$/
const { tunnelServicesMax, entriesRetriedEveryMs } = serviceLimits

/** @param text `name:port`, `name:port:tcp` or `name:port:udp`. */
export function parseConfiguredService(text: string): ConfiguredServicePort | null {
  const [, withPort = '', digits = '', protocol = 'tcp'] = SERVICE.exec(text) ?? []
  const port = Number(digits)
  if (withPort === '' || port < 1 || port > 65_535) return null
  return { name: withPort, port, protocol: protocol === 'udp' ? 'udp' : 'tcp' }
}

/**
 * Mode `proxy`: opens ports of this host on which each connection becomes a circuit to a service. A
 * port is open as long as the tunnel's identity may dial the service.
 */
export class ProxyPortManager {
  readonly #deps: ProxyPortManagerDeps
  readonly #failures: RateLimitedWarningLog
  readonly #open = new Map<string, { readonly entry: Entry; readonly listener: Listener }>()
  /** Runs the opening and closing of ports one after the other. */
  readonly #tasks = new KeyedTasks(1)
  readonly #failed = new Map<string, string>()
  /** Names of the configured services about which a warning was logged. */
  readonly #unknown = new Set<string>()
  #stopTimer: (() => void) | null = null
  #isStopped = false

  constructor(parts: ProxyPortManagerDeps) {
    this.#deps = parts
    this.#failures = new RateLimitedWarningLog(parts.log, parts.clock)
  }

  get entries(): readonly Entry[] {
    return [...this.#open.values()].map(({ entry }) => entry)
  }

  start(): void {
    // Tries again to open ports that were in use.
    this.#stopTimer = periodicScheduler.every(entriesRetriedEveryMs, () => this.refresh())
  }

  /** Opens and closes ports according to what the identity may dial. */
  refresh(): void {
    void this.#tasks.run('', () => this.#refresh())
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopTimer?.()
    await this.#tasks.run('', () => this.#closeAllBut(new Map()))
  }

  async #refresh(): Promise<void> {
    if (this.#isStopped) return
    const wanted = this.#wanted()
    this.#warnOfUnknown()
    await this.#closeAllBut(wanted)
    for (const key of this.#failed.keys()) if (!wanted.has(key)) this.#failed.delete(key)
    for (const [key, entry] of wanted) if (!this.#open.has(key)) await this.#add(key, entry)
  }

  /** Warns once about each configured service that the identity may not dial. */
  #warnOfUnknown(): void {
    const { services, configured, log } = this.#deps
    if (services.identity() === undefined) return
    const names = new Set(
      [...services.idsOf('Dial')].flatMap((id) => services.service(id)?.name ?? []),
    )
    for (const service of new Set(configured.map(({ name }) => name))) {
      if (names.has(service)) this.#unknown.delete(service)
      else if (!this.#unknown.has(service)) {
        this.#unknown.add(service)
        const reason = 'the identity may dial no service of this name'
        log.warn({ service, reason }, 'service not offered')
      }
    }
  }

  #wanted(): ReadonlyMap<string, Entry> {
    const { services, configured, anyAddress } = this.#deps
    const wanted = new Map<string, Entry>()
    for (const serviceId of [...services.idsOf('Dial')].sort()) {
      const service = services.service(serviceId)
      if (service === undefined || wanted.size >= tunnelServicesMax) continue
      const config = services.configsOf(service).get(PROXY_CONFIG_TYPE)
      const { name } = service
      const places = config === undefined ? null : this.#placesOf(serviceId, config)
      const own = configured
        .filter((each) => each.name === name)
        .map(({ port, protocol }) => ({ port, protocol, address: anyAddress }))
      for (const place of places ?? own) {
        const entry = { serviceId, name, ...place }
        wanted.set(JSON.stringify([serviceId, name, place]), entry)
      }
    }
    return wanted
  }

  /** null if the config is invalid. */
  #placesOf(
    serviceId: string,
    { dataJson }: ModelConfig,
  ): readonly Omit<Entry, 'serviceId' | 'name'>[] | null {
    const data = parseJsonOrNull(dataJson) as Readonly<Record<string, unknown>> | null
    const { port, protocols, binding = '' } = data ?? {}
    const address = typeof binding === 'string' ? this.#addressOf(binding) : null
    const known = Array.isArray(protocols) ? (protocols as readonly unknown[]) : []
    const isUsable =
      typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535
    if (!isUsable || address === null || known.length === 0 || !known.every(isProtocol)) {
      this.#failures.warn(PROXY_CONFIG_TYPE, 'a config cannot be followed', {
        serviceId,
        service: this.#deps.services.service(serviceId)?.name ?? '',
        reason:
          'it needs port, protocols of tcp and udp, and as its binding an interface of this host with an IPv4 address, or the address itself',
      })
      return null
    }
    return [...new Set(known)].map((protocol) => ({ protocol, port, address }))
  }

  #addressOf(binding: string): string | null {
    return binding === '' ? this.#deps.anyAddress : addressOf(binding)
  }

  async #add(key: string, entry: Entry): Promise<void> {
    const { log } = this.#deps
    const { serviceId, name, protocol, address, port } = entry
    const listener = this.#listenerFor(entry)
    const fields = { serviceId, service: name, protocol, address, port }
    try {
      await listener.listen()
      this.#open.set(key, { entry, listener })
      this.#failed.delete(key)
      log.info(fields, 'service offered')
    } catch (error) {
      const reason = errorMessage(error)
      if (this.#failed.get(key) !== reason) log.error({ ...fields, reason }, 'service not offered')
      this.#failed.set(key, reason)
    }
  }

  async #closeAllBut(wanted: ReadonlyMap<string, Entry>): Promise<void> {
    for (const [key, { entry, listener }] of Array.from(this.#open)) {
      if (wanted.has(key)) continue
      this.#open.delete(key)
      const { serviceId, name, protocol, port } = entry
      const fields = { serviceId, service: name, protocol, port }
      this.#deps.log.info(fields, 'service offered no more')
      await listener.close()
    }
  }

  #listenerFor({ serviceId, name, protocol, address, port }: Entry): Listener {
    const { circuits, requests, services, circuitTimeoutMs, datagramsIdleMs, flow } = this.#deps
    const secure = new SecureCircuitOpener({
      open: (circuit, application) => circuits.open(circuit, application),
      appData: { dst_protocol: protocol, dst_ip: ANY_ADDRESS, dst_port: String(port) },
      instanceId: '',
      // If the service is unknown, it is dialed with encryption.
      isEncrypted: () => services.service(serviceId)?.encryptionRequired !== false,
    })
    const parts = {
      place: `tunnel service ${name}`,
      bind: { protocol, host: address, port, text: `${protocol}:${address}:${port}` },
      service: name,
      circuitTimeoutMs,
      circuits: secure,
      flow,
      requests,
      circuitData: () => secure.circuitData(),
      failures: this.#failures,
    }
    if (protocol === 'udp') return new DatagramListener({ ...parts, idleMs: datagramsIdleMs })
    return new StreamListener({ ...parts, identity: null, handshakeTimeoutMs: circuitTimeoutMs })
  }
}

function isProtocol(value: unknown): value is TunnelProtocol {
  return value === 'tcp' || value === 'udp'
}

/**
 * @param binding an IPv4 address, or an interface.
 * @returns null if it is an interface that this host does not have, or without an IPv4 address.
 */
function addressOf(binding: string): string | null {
  if (isIPv4(binding)) return binding
  const found = networkInterfaces()[binding]?.find(({ family }) => family === 'IPv4')
  return found?.address ?? null
}
