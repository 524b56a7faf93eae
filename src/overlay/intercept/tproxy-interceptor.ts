import { readFile } from 'node:fs/promises'

import type { ModelIdentity } from '../../../proto/gen/router_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { KeyedTasks } from '../../lib/keyed-tasks.ts'
import { formatHostPort, parseHostPort } from '../../lib/text/names.ts'
import type { CircuitEndpoint, LocalCircuits } from '../circuits/circuit-endpoint.ts'
import type { XgressOptions } from '../circuits/xgress-options.ts'
import { serviceLimits } from '../services/limits.ts'
import { interceptLimits } from './limits.ts'
import type { CircuitSource } from '../circuits/circuit-source.ts'
import { RateLimitedWarningLog } from '../sockets/rate-limited-warning-log.ts'
import type { ChosenService, ClientSocketAddresses } from '../sockets/stream-listener.ts'
import { ProgramFailure } from '../failure.ts'
import type { ProgramLogger } from '../logger.ts'
import type { TunnelProtocol } from '../services/host-config.ts'
import { fillIdentityTemplate } from '../services/identity-template.ts'
import { SecureCircuitOpener } from '../services/secure-circuit-opener.ts'
import type { UsableServices } from '../services/usable-services.ts'
import {
  interceptConfigTypes,
  type InterceptConfig,
  parseInterceptConfig,
} from './intercept-config.ts'
import { InterceptListeners } from './intercept-listeners.ts'
import {
  type InterceptedService,
  type InterceptedDestination,
  InterceptTable,
} from './intercept-table.ts'
import { ListeningPlan } from './listening-plan.ts'
import type { RunNftScript } from './port-redirector.ts'
import { LocalRouteManager, type RunIpCommand } from './local-route-manager.ts'
import { NameServer, type NameServerDeps, type ResolvedName } from './name-server.ts'
import { interfaceNetworks, hostAddresses, ProtectedAddresses } from './protected-addresses.ts'
import { ServiceAddressAllocator } from './service-address-allocator.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import { type IpAddress, parseIp } from '../../lib/text/ip-address.ts'
import { type IpNetwork, networkContains } from '../../lib/text/networks.ts'

export interface TproxyInterceptorDeps {
  readonly services: UsableServices
  /** Identifies routes and addresses that this tunnel adds to its host. */
  readonly identityId: string
  readonly circuits: Pick<LocalCircuits, 'open'>
  readonly requests: CircuitSource
  readonly flow: XgressOptions
  readonly circuitTimeoutMs: number
  readonly datagramsIdleMs: number
  readonly clock: Clock
  readonly log: ProgramLogger
  /** IPv4 network from which service names get addresses. */
  readonly namesRange: IpNetwork
  readonly nameServers: readonly Omit<NameServerDeps, 'isClient' | 'resolve' | 'log'>[]
  /** Interfaces whose networks may use the services, in addition to this host. */
  readonly interfaces: readonly string[]
  /**
   * Addresses (`tls:host:port` or `host:port`) that the tunnel must reach itself; their hosts are
   * never intercepted.
   */
  readonly neededAddresses: () => readonly string[]
  readonly runIp: RunIpCommand
  readonly runNft: RunNftScript
  /** File with the configured name servers of this host. */
  readonly resolverFile: string
}

/** A service with intercepted connections, and its open circuits. */
interface Taken {
  readonly key: string
  readonly ends: Set<Pick<CircuitEndpoint, 'abort'>>
}

interface Wanted extends InterceptedService {
  /** A text that differs whenever a relevant part of the service differs. */
  readonly key: string
}

/** The part of a service that is intercepted, if any, and why other parts are not. */
type Planned =
  | { readonly terms: InterceptConfig; readonly faults: readonly string[] }
  | { readonly faults: readonly string[] }

const PLACE = 'tunnel'
/** Maximum faults of one service in one log line. */
const loggedFaultsMax = 4
const { tunnelServicesMax, entriesRetriedEveryMs } = serviceLimits
const { interceptedClientsMax, serviceNamesMax, serviceNamesWaitingMax } = interceptLimits

/**
 * Mode `tproxy`: turns connections to the addresses and names of services into circuits, for
 * programs of this host and for the networks of `interfaces`. The addresses lead to this host as
 * long as the identity may dial the services.
 */
export class TproxyInterceptor {
  readonly #deps: TproxyInterceptorDeps
  readonly #failures: RateLimitedWarningLog
  readonly #protected: ProtectedAddresses
  readonly #routes: LocalRouteManager
  readonly #names: ServiceAddressAllocator
  readonly #listeners: InterceptListeners
  readonly #nameServers: readonly NameServer[]
  /** Runs refreshes and the assignment of new names one after the other. */
  readonly #tasks = new KeyedTasks(1)
  readonly #taken = new Map<string, Taken>()
  readonly #faults = new Map<string, string>()
  readonly #clients = new Map<string, number>()
  #table = new InterceptTable([])
  /** Why this host cannot redirect ports; null if it can. */
  #redirectFault: string | null = null
  #plan = new ListeningPlan(null)
  #allowed: readonly IpNetwork[] = []
  #own: ReadonlySet<string> = new Set()
  #open = 0
  #stopTimer: (() => void) | null = null
  #isDue = false
  #isStopped = false

  constructor(deps: TproxyInterceptorDeps) {
    this.#deps = deps
    const { identityId, runIp, log, clock, namesRange } = deps
    this.#failures = new RateLimitedWarningLog(log, clock)
    this.#routes = new LocalRouteManager({ routerId: identityId, run: runIp, log })
    this.#protected = new ProtectedAddresses({
      hosts: () => this.#neededHosts(),
      systemHosts: () => this.#systemHosts(),
      isForServices: (address) => this.#routes.has(address),
      onResolved: () => this.refresh(),
    })
    this.#names = new ServiceAddressAllocator(namesRange, clock, ({ text }) =>
      this.#clients.has(text),
    )
    this.#listeners = new InterceptListeners({
      shared: {
        place: PLACE,
        service: '',
        circuits: deps.circuits,
        circuitTimeoutMs: deps.circuitTimeoutMs,
        handshakeTimeoutMs: deps.circuitTimeoutMs,
        identity: null,
        flow: deps.flow,
        idleMs: deps.datagramsIdleMs,
        requests: deps.requests,
        failures: this.#failures,
      },
      choose: (protocol, ends) => this.#choose(protocol, ends),
      log,
      owner: this.#routes.owner,
      runNft: deps.runNft,
    })
    this.#nameServers = deps.nameServers.map(
      (server) =>
        new NameServer({
          ...server,
          log,
          isClient: (address) => this.#isClient(address),
          resolve: (name) => this.#resolve(name),
        }),
    )
  }

  /** @throws {ProgramFailure} if this machine does not permit interception. */
  async start(): Promise<void> {
    const { namesRange } = this.#deps
    if (process.platform !== 'linux') {
      throw new ProgramFailure(
        'the tunnel has mode tproxy, which is for Linux alone: use mode proxy',
      )
    }
    if (namesRange.address.family !== 'ipv4') {
      throw new ProgramFailure('options.dnsSvcIpRange of the tunnel must be a network of IPv4')
    }
    await this.#protected.refresh()
    const fault = this.#protected.faultOf(namesRange)
    if (fault !== null) {
      throw new ProgramFailure(`options.dnsSvcIpRange of the tunnel cannot be used: ${fault}`)
    }
    await this.#routes.start(namesRange)
    this.#redirectFault = await this.#listeners.start()
    this.#look()
    for (const server of this.#nameServers) await server.start()
    await this.#warnUnlessAsked()
    this.#stopTimer = periodicScheduler.every(entriesRetriedEveryMs, () => this.refresh())
  }

  /** Starts and stops intercepting services according to what the identity may dial. */
  refresh(): void {
    // A refresh that waits will see the latest changes, so one is enough.
    if (this.#isDue) return
    this.#isDue = true
    void this.#tasks.run('', async () => {
      this.#isDue = false
      await this.#refresh()
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stopTimer?.()
    this.#table = new InterceptTable([])
    for (const server of this.#nameServers) await server.stop()
    await this.#tasks.run('', async () => {
      for (const id of Array.from(this.#taken.keys())) this.#release(id, 'the tunnel stops')
      await this.#listeners.stop()
      await this.#routes.stop()
    })
  }

  /** Intercepted services, for inspections. */
  get entries(): readonly object[] {
    return this.#table.intercepts.map(({ serviceId, service, terms }) => ({
      serviceId,
      name: service,
      protocols: [...terms.protocols],
      ports: terms.ports,
      circuits: this.#taken.get(serviceId)?.ends.size ?? 0,
    }))
  }

  figures(): Readonly<Record<string, number>> {
    const counts = this.#nameServers.map((server) => server.counts)
    return {
      'tunnel.intercepts': this.#table.intercepts.length,
      'tunnel.intercept_ports': this.#listeners.count,
      'tunnel.intercept_routes': this.#routes.networks.length,
      'tunnel.intercept_clients': this.#open,
      'tunnel.names': this.#names.names.size,
      'tunnel.name_queries': counts.reduce((sum, { queries }) => sum + queries, 0),
      'tunnel.name_queries_dropped': counts.reduce((sum, { dropped }) => sum + dropped, 0),
    }
  }

  async #refresh(): Promise<void> {
    if (this.#isStopped) return
    try {
      await this.#protected.refresh()
      this.#look()
      const wanted = this.#wanted()
      this.#plan = new ListeningPlan(this.#redirectFault)
      const known = new Map(this.#taken)
      const taken: InterceptedService[] = []
      for (const [serviceId, each] of wanted) {
        const found = typeof each === 'string' ? { faults: [each] } : this.#planned(each)
        if ('terms' in found && typeof each !== 'string') {
          taken.push(this.#take({ ...each, terms: found.terms }))
        }
        this.#warn(serviceId, found.faults, 'terms' in found)
      }
      const ids = new Set(taken.map(({ serviceId }) => serviceId))
      for (const id of Array.from(this.#taken.keys())) {
        if (!ids.has(id)) this.#release(id, 'the identity may not dial the service any more')
      }
      this.#planKnownNames(taken)
      for (const id of this.#faults.keys()) {
        if (!wanted.has(id)) this.#faults.delete(id)
      }
      this.#table = new InterceptTable(taken)
      await this.#routes.set([this.#deps.namesRange, ...this.#plan.networks])
      await this.#listeners.set(this.#plan)
      for (const { serviceId, service } of taken) {
        if (known.get(serviceId) === this.#taken.get(serviceId)) continue
        this.#deps.log.info({ serviceId, service }, 'service intercepted')
      }
    } catch (error) {
      this.#deps.log.error({ reason: errorMessage(error) }, 'services could not be intercepted')
    }
  }

  /** Services with an intercept config, by ID; for an invalid config, why it is invalid. */
  #wanted(): ReadonlyMap<string, Wanted | string> {
    const { services } = this.#deps
    const wanted = new Map<string, Wanted | string>()
    for (const serviceId of [...services.idsOf('Dial')].sort()) {
      const service = services.service(serviceId)
      if (service === undefined || wanted.size >= tunnelServicesMax) continue
      const configs = services.configsOf(service)
      const type = interceptConfigTypes.find((each) => configs.has(each))
      const config = type === undefined ? undefined : configs.get(type)
      // Only SDKs and other tunnels use services without an intercept config.
      if (type === undefined || config === undefined) continue
      const { name } = service
      const key = JSON.stringify([name, type, config.dataJson])
      try {
        const terms = parseInterceptConfig(type, config.dataJson)
        wanted.set(serviceId, { serviceId, service: name, terms, key })
      } catch (error) {
        wanted.set(serviceId, errorMessage(error))
      }
    }
    return wanted
  }

  /**
   * Plans the ports of a service.
   * @returns the parts of the service that this host can and may intercept, and why others are left
   * out; no `terms` if nothing is left.
   */
  #planned(intercept: Wanted): Planned {
    const { terms } = intercept
    const faults = [...terms.faults]
    const isAllowed = (fault: string | null): boolean => {
      if (fault !== null) faults.push(fault)
      return fault === null
    }
    const networks = terms.networks.filter((network) => isAllowed(this.#networkFault(network)))
    const allowed = [...terms.names].filter((name) => isAllowed(this.#nameFault(name)))
    // @guard addresses-a-service-takes--crowded
    const named = this.#addressesOf(allowed)
    const names = new Set(named.keys())
    if (names.size < allowed.length) faults.push(`${serviceNamesMax} names have an address already`)
    const left = { ...terms, networks, names }
    const planned = this.#plan.add({ ...intercept, terms: left }, networks, [...named.values()])
    faults.push(...planned.faults)
    const isTaken = planned.isAny || terms.domains.size > 0
    return isTaken ? { terms: left, faults } : { faults }
  }

  #networkFault(network: IpNetwork): string | null {
    const { namesRange } = this.#deps
    const fault = this.#protected.faultOf(network)
    if (fault !== null) return fault
    if (networkContains(network, namesRange.address)) {
      return 'its network contains an address from the range for service names (dnsSvcIpRange)'
    }
    // @guard addresses-a-service-takes--range
    if (networkContains(namesRange, network.address)) {
      return 'its address is one of those for names of services (dnsSvcIpRange)'
    }
    return null
  }

  #nameFault(name: string): string | null {
    if (!this.#protected.hasName(name)) return null
    return `${name} is the name of this host or of one that it needs`
  }

  /** Addresses for names without wildcard; some get none if there are too many names. */
  #addressesOf(names: readonly string[]): ReadonlyMap<string, IpAddress> {
    const found = new Map<string, IpAddress>()
    for (const name of names) {
      const address = this.#names.use(name)
      if (address === null) break
      found.set(name, address)
    }
    return found
  }

  /**
   * Plans the ports of names below wildcards that clients have queried. Planned after all services,
   * so that many queries cannot use up the ports of services.
   */
  #planKnownNames(taken: readonly InterceptedService[]): void {
    const wild = taken.filter(({ terms }) => terms.domains.size > 0)
    for (const [name, { address }] of this.#names.names) {
      for (const intercept of wild) {
        const { domains } = intercept.terms
        if (!isBelow(name, domains)) continue
        const { faults } = this.#plan.add(intercept, [], [address])
        const [fault] = faults
        if (fault !== undefined) this.#failures.warn(PLACE, 'a name lacks ports', { name, fault })
      }
    }
  }

  #take(intercept: Wanted): InterceptedService {
    const { serviceId, key } = intercept
    if (this.#taken.get(serviceId)?.key === key) return intercept
    this.#release(serviceId, 'the service has changed')
    this.#taken.set(serviceId, { key, ends: new Set() })
    return intercept
  }

  #release(serviceId: string, reason: string): void {
    const taken = this.#taken.get(serviceId)
    if (taken === undefined) return
    this.#taken.delete(serviceId)
    this.#deps.log.info({ serviceId, reason }, 'service intercepted no more')
    for (const end of Array.from(taken.ends)) end.abort(reason)
  }

  /** Logs the faults of a service once. @param isTaken whether other parts are intercepted. */
  #warn(serviceId: string, faults: readonly string[], isTaken: boolean): void {
    const reason = faults.slice(0, loggedFaultsMax).join('; ')
    if ((this.#faults.get(serviceId) ?? '') === reason) return
    this.#faults.set(serviceId, reason)
    if (reason === '') return
    const service = this.#deps.services.service(serviceId)?.name ?? ''
    const message = isTaken ? 'part of a service not intercepted' : 'service not intercepted'
    this.#deps.log.warn({ serviceId, service, reason }, message)
  }

  #look(): void {
    this.#allowed = interfaceNetworks(this.#deps.interfaces)
    this.#own = new Set(hostAddresses().map(({ text }) => text))
  }

  /**
   * Whether a client is on this host or in a served network. The kernel drops IPv4 packets from
   * other hosts whose source is an address of this host.
   */
  #isClient(address: string): boolean {
    const ip = parseIp(address)
    if (ip === null) return false
    return (
      this.#own.has(ip.text) ||
      loopback.some((network) => networkContains(network, ip)) ||
      this.#isIntercepted(ip) ||
      this.#allowed.some((network) => networkContains(network, ip))
    )
  }

  /**
   * Whether the address belongs to an intercepted network. If a program on this host connects to
   * such an address, the kernel also uses this address as the source of the connection.
   */
  #isIntercepted(ip: IpAddress): boolean {
    return [this.#deps.namesRange, ...this.#plan.networks].some((network) =>
      networkContains(network, ip),
    )
  }

  #choose(protocol: TunnelProtocol, ends: ClientSocketAddresses): ChosenService | null {
    const address = parseIp(ends.localAddress)
    // @guard addresses-a-service-takes--source
    if (address === null || !this.#isClient(ends.remoteAddress)) return null
    const place: InterceptedDestination = {
      protocol,
      address,
      hostname: this.#names.nameOf(address),
      port: ends.localPort,
    }
    const intercept = this.#table.find(place)
    const taken = intercept === null ? undefined : this.#taken.get(intercept.serviceId)
    if (intercept === null || taken === undefined) return null
    if (this.#open >= interceptedClientsMax) {
      this.#failures.warn(PLACE, 'too many connections', { limit: interceptedClientsMax })
      return null
    }
    return this.#chosen(intercept, place, taken, ends)
  }

  #chosen(
    { service, serviceId, terms }: InterceptedService,
    place: InterceptedDestination,
    taken: Taken,
    ends: ClientSocketAddresses,
  ): ChosenService {
    const { services, circuits, circuitTimeoutMs } = this.#deps
    const values = valuesOf(place, ends)
    const identity = services.identity()
    const secure = new SecureCircuitOpener({
      open: (circuit, application) => {
        if (this.#taken.get(serviceId) !== taken) throw new Error('the service is gone')
        let end: CircuitEndpoint | null = null
        const opened = circuits.open(circuit, {
          deliver: (piece) => application.deliver(piece),
          onFinished: () => application.onFinished(),
          onWritable: () => application.onWritable(),
          onClosed: (reason, isWhole) => {
            if (end !== null) this.#leave(taken, end, place.address)
            application.onClosed(reason, isWhole)
          },
        })
        if (opened.isClosed) return opened
        end = opened
        this.#enter(taken, opened, place.address)
        return opened
      },
      appData: { ...values, source_addr: filled(terms.source, identity, values) },
      instanceId: filled(terms.instance, identity, values),
      // If the service is unknown, it is dialed with encryption.
      isEncrypted: () => services.service(serviceId)?.encryptionRequired !== false,
    })
    return {
      service,
      circuits: secure,
      circuitData: () => secure.circuitData(),
      circuitTimeoutMs: terms.connectTimeoutMs ?? circuitTimeoutMs,
    }
  }

  #enter({ ends }: Taken, end: Pick<CircuitEndpoint, 'abort'>, { text }: IpAddress): void {
    ends.add(end)
    this.#open += 1
    this.#clients.set(text, (this.#clients.get(text) ?? 0) + 1)
  }

  #leave({ ends }: Taken, end: Pick<CircuitEndpoint, 'abort'>, { text }: IpAddress): void {
    if (!ends.delete(end)) return
    this.#open -= 1
    const left = (this.#clients.get(text) ?? 1) - 1
    if (left > 0) this.#clients.set(text, left)
    else this.#clients.delete(text)
  }

  async #resolve(name: string): Promise<ResolvedName> {
    // @guard addresses-a-service-takes--wildcard
    if (this.#protected.hasName(name)) return 'unclaimed'
    const claims = this.#table.claimsOn(name)
    if (claims.length === 0) return 'unclaimed'
    const known = this.#names.names.has(name) ? this.#names.use(name) : null
    if (known !== null) return { address: known.text }
    if (this.#tasks.count('') >= serviceNamesWaitingMax) return 'unavailable'
    return this.#tasks.run('', () => this.#learn(name))
  }

  /** Assigns an address and ports to a name below a wildcard before the query is answered. */
  async #learn(name: string): Promise<ResolvedName> {
    if (this.#isStopped) return 'unavailable'
    const claims = this.#table.claimsOn(name)
    if (claims.length === 0) return 'unclaimed'
    const isNew = !this.#names.names.has(name)
    const address = this.#names.use(name)
    const planned = address === null ? [] : claims.map((one) => this.#plan.add(one, [], [address]))
    const isPlanned = planned.every(({ isAny }) => isAny)
    if (address === null || (!isPlanned && isNew)) {
      if (isNew) this.#names.forget(name)
      const [reason] =
        address === null ? ['too many names'] : planned.flatMap(({ faults }) => faults)
      this.#failures.warn(PLACE, 'a name has no address', { name, reason })
      return 'unavailable'
    }
    await this.#listeners.open(this.#plan)
    return { address: address.text }
  }

  #neededHosts(): readonly string[] {
    const { neededAddresses, nameServers } = this.#deps
    const needed = neededAddresses().map((text) => parseHostPort(text.replace(/^tls:/, ''))?.host)
    const upstreams = nameServers.flatMap(({ upstream }) => upstream?.servers ?? [])
    return [...needed.filter((host) => host !== undefined), ...upstreams.map(({ host }) => host)]
  }

  async #systemHosts(): Promise<readonly string[]> {
    const routes = await this.#deps.runIp(['route', 'show', 'default']).catch(() => '')
    const gateways = [...routes.matchAll(/ via (\S+)/g)].map(([, gateway]) => gateway ?? '')
    return [...gateways, ...(await this.#configuredResolvers())]
  }

  async #configuredResolvers(): Promise<readonly string[]> {
    const text = await readFile(this.#deps.resolverFile, 'utf8').catch(() => '')
    return [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, host]) => host ?? '')
  }

  /**
   * Warns if the resolver file names none of the tunnel's name servers: unless queries reach one in
   * another way, programs of this host cannot resolve service names.
   */
  async #warnUnlessAsked(): Promise<void> {
    const { nameServers, resolverFile, log } = this.#deps
    const configured = new Set(await this.#configuredResolvers())
    const own = nameServers.map(({ bind }) => bind)
    if (own.length === 0 || own.some(({ host }) => configured.has(host))) return
    log.warn(
      { resolver: own.map(formatHostPort).join(', '), configured: [...configured].join(', ') },
      `names of services are not resolved by programs of this host, as ${resolverFile} does not name this name server: put "nameserver ${own[0]?.host ?? ''}" first there, or with systemd-resolved run: resolvectl dns lo ${own[0]?.host ?? ''} && resolvectl domain lo "~."`,
    )
  }
}

const loopback = ['127.0.0.0', '::1'].flatMap((text): IpNetwork[] => {
  const address = parseIp(text)
  return address === null ? [] : [{ address, prefix: text === '::1' ? 128 : 8 }]
})

function isBelow(name: string, domains: ReadonlySet<string>): boolean {
  return [...domains].some((domain) => name === domain || name.endsWith(`.${domain}`))
}

function valuesOf(
  { protocol, address, hostname, port }: InterceptedDestination,
  ends: ClientSocketAddresses,
) {
  return {
    dst_protocol: protocol,
    dst_ip: address.text,
    dst_hostname: hostname ?? '',
    dst_port: String(port),
    src_protocol: protocol,
    src_ip: parseIp(ends.remoteAddress)?.text ?? '',
    src_port: String(ends.remotePort),
  }
}

function filled(
  template: string,
  identity: ModelIdentity | undefined,
  values: Readonly<Record<string, string>>,
): string {
  if (template === '') return ''
  return fillIdentityTemplate(
    template,
    identity ?? { name: '', appDataJson: new Uint8Array() },
    values,
  )
}
