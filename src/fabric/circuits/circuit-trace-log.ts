import { type IdentityTrace, traceChannels } from '../../ports/identity-traces.ts'
import type { AdmittedClient } from '../../ports/router-clients.ts'
import type { RouterLogger } from '../router-channels.ts'
import type { HostCandidate } from './choose-host.ts'
import type { RouteParameters } from './route.ts'
import type { RouteFault } from './route-fault.ts'

export interface CircuitTraceLogDeps {
  readonly log: Pick<RouterLogger, 'info'>
  readonly trace: IdentityTrace
  readonly circuitId: string
  readonly client: AdmittedClient
}

/**
 * Logs how a circuit of a traced identity is created, at this controller and at the routers on its
 * path.
 */
export class CircuitTraceLog {
  /** Fields that the routers on the path log. */
  readonly ofRoutes: NonNullable<RouteParameters['trace']>
  readonly #log: CircuitTraceLogDeps['log']
  readonly #fields: Readonly<Record<string, string>>
  readonly #channels: number

  constructor({ log, trace, circuitId, client }: CircuitTraceLogDeps) {
    const { traceId, channels } = trace
    const { sessionId, apiSessionId, identityId, serviceId } = client
    this.#log = log
    this.#channels = channels
    this.#fields = { traceId, circuitId, identityId, serviceId, sessionId, apiSessionId }
    this.ofRoutes = { channels, fields: { traceId, sessionId, apiSessionId } }
  }

  /** @param chosen the chosen host; null if no host can be reached. */
  onChosen(attempt: number, chosen: HostCandidate | null): void {
    if ((this.#channels & traceChannels.selectPath) === 0) return
    if (chosen === null) {
      this.#log.info({ ...this.#fields, attempt }, 'traced: no host can be reached')
      return
    }
    const { host, path } = chosen
    const linkIds = path.links.map(({ id }) => id)
    const way = { terminatorId: host.terminatorId, routerIds: path.routerIds, linkIds }
    this.#log.info({ ...this.#fields, attempt, ...way }, 'traced: host and path chosen')
  }

  onAttempted(attempt: number, fault: RouteFault | null): void {
    if ((this.#channels & traceChannels.establishPath) === 0) return
    if (fault === null) this.#log.info({ ...this.#fields, attempt }, 'traced: circuit made')
    else {
      const { cause, text: reason } = fault
      this.#log.info({ ...this.#fields, attempt, cause, reason }, 'traced: attempt failed')
    }
  }
}
