import { hash } from 'node:crypto'

import type { ModelConfig, ModelIdentity, ModelService } from '../../../proto/gen/router_pb.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { CircuitEndpoint } from '../circuits/circuit-endpoint.ts'
import { serviceLimits } from './limits.ts'
import type { ProgramLogger } from '../logger.ts'
import { HealthProbeRunner } from './health-probe-runner.ts'
import {
  type HostConfigType,
  hostConfigTypes,
  type HostConfig,
  parseHostConfig,
} from './host-config.ts'
import { fillIdentityTemplate } from './identity-template.ts'
import { newKeyPair } from './secure-stream.ts'
import type { DialedTerminator } from './tunnel-dialer.ts'
import {
  type RequestedTunnelTerminator,
  precedenceName,
} from '../../channel/messages/terminators.ts'
import type { UsableServices } from './usable-services.ts'

/** Creates and removes terminators, at the controllers or through edge routers. */
export interface TerminatorPublisher {
  /** Creates a terminator, or changes the one with the same ID. */
  offer(wanted: RequestedTunnelTerminator): void
  withdraw(id: string): void
  /** Reports the health of a terminator's target. */
  sendHealth(id: string, isHealthy: boolean): void
}

interface HostedServiceManagerDeps {
  readonly services: UsableServices
  readonly terminators: TerminatorPublisher
  readonly identityId: string
  /** Whether a terminator has one key for all clients, instead of a key for each circuit. */
  readonly hasKeyPerTerminator: boolean
  readonly log: ProgramLogger
}

interface HostedTerminator extends DialedTerminator {
  readonly id: string
  readonly probes: HealthProbeRunner
  readonly ends: Set<Pick<CircuitEndpoint, 'abort'>>
  offered: RequestedTunnelTerminator
}

interface HostedService {
  readonly name: string
  /** A text that differs whenever a relevant part of the service differs. */
  readonly key: string
  readonly terminators: readonly HostedTerminator[]
}

/** A service to host, and the config to use. */
interface WantedService {
  readonly service: ModelService
  readonly identity: ModelIdentity
  readonly type: HostConfigType
  readonly config: ModelConfig
}

const { tunnelServicesMax } = serviceLimits

/**
 * Hosts the services that the identity of a tunnel may host and that have a valid config for
 * hosting. Each has terminators as long as both are true. If the `key` of a service changes, the
 * service is removed with its circuits and created again.
 */
export class HostedServiceManager {
  readonly #deps: HostedServiceManagerDeps
  readonly #services = new Map<string, HostedService>()
  readonly #terminators = new Map<string, HostedTerminator>()
  /** The fault that was last logged for each service. */
  readonly #faults = new Map<string, string>()

  constructor(deps: HostedServiceManagerDeps) {
    this.#deps = deps
  }

  get services(): readonly {
    readonly id: string
    readonly name: string
    readonly circuits: number
  }[] {
    return Array.from(this.#services, ([id, { name, terminators }]) => {
      const circuits = terminators.reduce((sum, { ends }) => sum + ends.size, 0)
      return { id, name, circuits }
    })
  }

  terminator(id: string): DialedTerminator | undefined {
    return this.#terminators.get(id)
  }

  /** Adds and removes services according to what the identity may host now. */
  refresh(): void {
    const wanted = this.#wanted()
    for (const id of Array.from(this.#services.keys())) {
      if (!wanted.has(id)) this.#remove(id, 'the identity may not host it any more')
    }
    for (const id of this.#faults.keys()) if (!wanted.has(id)) this.#faults.delete(id)
    for (const [id, each] of wanted) this.#keep(id, each)
  }

  stop(): void {
    for (const { terminators } of this.#services.values()) {
      for (const terminator of terminators) release(terminator, 'the tunnel stops')
    }
  }

  #wanted(): ReadonlyMap<string, WantedService | null> {
    const { services, log } = this.#deps
    const identity = services.identity()
    const wanted = new Map<string, WantedService | null>()
    if (identity === undefined) return wanted
    for (const id of [...services.idsOf('Bind')].sort()) {
      const service = services.service(id)
      if (service === undefined) continue
      if (wanted.size >= tunnelServicesMax) {
        log.warn({ limit: tunnelServicesMax }, 'more services than a tunnel hosts; some are not')
        break
      }
      const configs = services.configsOf(service)
      const type = hostConfigTypes.find((each) => configs.has(each))
      const config = type === undefined ? undefined : configs.get(type)
      const isThere = type !== undefined && config !== undefined
      wanted.set(id, isThere ? { service, identity, type, config } : null)
    }
    return wanted
  }

  #keep(id: string, wanted: WantedService | null): void {
    if (wanted === null) {
      this.#remove(id, 'it has no config any more by which it is hosted')
      this.#warn(id, `it has none of the configs ${hostConfigTypes.join(', ')}`)
      return
    }
    const { service, identity, type, config } = wanted
    const { name, encryptionRequired } = service
    // If the config contains a template with the identity, the instance names of its terminators
    // can change when the identity changes.
    const instance = config.dataJson.includes('dentity')
      ? [identity.name, Buffer.from(identity.appDataJson).toString('utf8')]
      : []
    const key = JSON.stringify([name, encryptionRequired, type, config.dataJson, instance])
    if (this.#services.get(id)?.key !== key) {
      this.#remove(id, 'the service has changed')
      this.#add(id, key, wanted)
    }
    for (const terminator of this.#services.get(id)?.terminators ?? []) {
      this.#offer(terminator, offeredFor(terminator, service, identity))
    }
  }

  #add(id: string, key: string, { service, identity, type, config }: WantedService): void {
    let all: readonly HostConfig[]
    try {
      all = parseHostConfig(type, config.dataJson)
    } catch (error) {
      this.#warn(id, errorMessage(error))
      return
    }
    this.#faults.delete(id)
    const terminators = all.map((terms, at) => this.#made(terms, service, identity, at))
    for (const terminator of terminators) this.#terminators.set(terminator.id, terminator)
    this.#services.set(id, { name: service.name, key, terminators })
  }

  #made(
    terms: HostConfig,
    service: ModelService,
    identity: ModelIdentity,
    at: number,
  ): HostedTerminator {
    const { identityId, terminators } = this.#deps
    const ends = new Set<Pick<CircuitEndpoint, 'abort'>>()
    const instanceId = instanceOf(terms, identity)
    const id = terminatorId(identityId, service.id, at, instanceId)
    const isKeyed = this.#deps.hasKeyPerTerminator && service.encryptionRequired
    const keys = isKeyed ? { keyPair: newKeyPair() } : {}
    const offered = offeredFor({ id, terms, ...keys }, service, identity)
    const probes = new HealthProbeRunner({
      probes: terms.probes,
      onEvent: (isHealthy) => terminators.sendHealth(id, isHealthy),
      onChanged: (state) => terminators.offer({ ...made.offered, ...state }),
    })
    const made: HostedTerminator = {
      id,
      terms,
      isEncrypted: service.encryptionRequired,
      ...keys,
      probes,
      ends,
      offered,
      hold: (end) => {
        ends.add(end)
        return () => ends.delete(end)
      },
    }
    probes.start({ cost: offered.cost, precedence: offered.precedence })
    terminators.offer(offered)
    return made
  }

  #offer(terminator: HostedTerminator, offered: RequestedTunnelTerminator): void {
    if (JSON.stringify(terminator.offered) === JSON.stringify(offered)) return
    const { cost, precedence } = offered
    terminator.offered = offered
    terminator.probes.start({ cost, precedence })
    this.#deps.terminators.offer(offered)
  }

  #remove(id: string, reason: string): void {
    const hosted = this.#services.get(id)
    if (hosted === undefined) return
    this.#services.delete(id)
    this.#deps.log.info({ serviceId: id, service: hosted.name, reason }, 'service hosted no more')
    for (const terminator of hosted.terminators) {
      this.#terminators.delete(terminator.id)
      this.#deps.terminators.withdraw(terminator.id)
      release(terminator, reason)
    }
  }

  #warn(serviceId: string, reason: string): void {
    if (this.#faults.get(serviceId) === reason) return
    this.#faults.set(serviceId, reason)
    const service = this.#deps.services.service(serviceId)?.name ?? ''
    this.#deps.log.warn({ serviceId, service, reason }, 'service not hosted')
  }
}

function release({ probes, ends }: HostedTerminator, reason: string): void {
  probes.stop()
  // @guard circuits-of-a-tunnel--ended
  for (const end of Array.from(ends)) end.abort(reason)
}

/**
 * The same ID after each restart, so that controllers keep no terminators of a previous process.
 */
function terminatorId(
  identityId: string,
  serviceId: string,
  at: number,
  instanceId: string,
): string {
  const hex = hash('sha256', JSON.stringify([identityId, serviceId, at, instanceId]))
  // Formatted as a UUID of version 8, whose bits an application may choose.
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * A value that the identity has for this service replaces that of the config. The identity's
 * default value applies if the config has none.
 */
function offeredFor(
  { id, terms, keyPair }: Pick<HostedTerminator, 'id' | 'terms' | 'keyPair'>,
  service: ModelService,
  identity: ModelIdentity,
): RequestedTunnelTerminator {
  const own = identity.serviceHostingPrecedences[service.id]
  const { defaultHostingPrecedence } = identity
  return {
    id,
    serviceId: service.id,
    cost: identity.serviceHostingCosts[service.id] ?? terms.cost ?? identity.defaultHostingCost,
    precedence:
      own === undefined
        ? (terms.precedence ?? precedenceName(defaultHostingPrecedence))
        : precedenceName(own),
    instanceId: instanceOf(terms, identity),
    ...(keyPair === undefined ? {} : { publicKey: keyPair.publicKey }),
  }
}

function instanceOf({ usesEdgeIdentity, identity: template }: HostConfig, identity: ModelIdentity) {
  return usesEdgeIdentity ? identity.name : fillIdentityTemplate(template, identity)
}
