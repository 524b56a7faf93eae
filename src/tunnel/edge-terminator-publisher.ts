import { encodeText, encodeFlag } from '../channel/headers.ts'
import type { Clock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-code.ts'
import { TaskPool } from '../lib/bounds/task-pool.ts'
import type { Random } from '../lib/random.ts'
import { edgeHeaderKey, edgeContentType } from '../channel/messages/edge.ts'
import type { TerminatorDialer } from '../overlay/circuits/circuit-endpoint.ts'
import { serviceLimits } from '../overlay/services/limits.ts'
import type { ProgramLogger } from '../overlay/logger.ts'
import { RateLimitedWarningLog } from '../overlay/sockets/rate-limited-warning-log.ts'
import type { TerminatorPublisher } from '../overlay/services/hosted-service-manager.ts'
import {
  type RequestedTunnelTerminator,
  terminatorPrecedence,
} from '../channel/messages/terminators.ts'
import type { TunnelCounts } from './tunnel-counts.ts'
import type { EdgeChannel, IncomingDial } from './edge-channel.ts'
import { tunnelLimits } from './limits.ts'
import type { ServiceSessionCache } from './service-session-cache.ts'
import { periodicScheduler } from '../lib/periodic-scheduler.ts'

interface EdgeTerminatorPublisherDeps {
  readonly sessions: Pick<ServiceSessionCache, 'of' | 'forget'>
  /** Connected edge routers, nearest first. */
  readonly routers: () => readonly EdgeChannel[]
  readonly dialer: () => TerminatorDialer
  /** Name of a service; '' for an unknown service. */
  readonly serviceName: (id: string) => string
  readonly counts: Pick<TunnelCounts, 'hostedDials'>
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
}

/** A terminator, and its state at each edge router that hosts it. */
interface Hosted {
  wanted: RequestedTunnelTerminator
  /** Connection ID at each edge router; null while the bind request is pending. */
  readonly at: Map<EdgeChannel, number | null>
  isWorking: boolean
  /** Number of failed attempts since the last success or call of `retry`. */
  failures: number
  dueMs: number
  fault: string
}

const {
  hostedAtMax,
  hostsJudgedEveryMs,
  hostChangesAtOnceMax,
  bindAgainMsMin,
  bindAgainMsMax,
  dialMs,
} = tunnelLimits

/** Hosts each terminator at the few nearest edge routers, until the terminator is withdrawn. */
export class EdgeTerminatorPublisher implements TerminatorPublisher {
  readonly #deps: EdgeTerminatorPublisherDeps
  readonly #hosted = new Map<string, Hosted>()
  readonly #pool = new TaskPool({
    workersMax: hostChangesAtOnceMax,
    waitingMax: serviceLimits.tunnelServicesMax * serviceLimits.hostedTerminatorsMax,
  })
  readonly #failures: RateLimitedWarningLog
  #stopTimer: (() => void) | null = null

  constructor(deps: EdgeTerminatorPublisherDeps) {
    this.#deps = deps
    this.#failures = new RateLimitedWarningLog(deps.log, deps.clock)
  }

  get figures(): readonly { readonly service: string; readonly hostedAt: number }[] {
    return Array.from(this.#hosted.values(), ({ wanted, at }) => ({
      service: this.#deps.serviceName(wanted.serviceId),
      hostedAt: [...at.values()].filter((connectionId) => connectionId !== null).length,
    }))
  }

  start(): void {
    this.#stopTimer = periodicScheduler.every(hostsJudgedEveryMs, () => this.judge())
  }

  stop(): void {
    this.#stopTimer?.()
    for (const id of Array.from(this.#hosted.keys())) this.withdraw(id)
  }

  offer(wanted: RequestedTunnelTerminator): void {
    const known = this.#hosted.get(wanted.id)
    if (known === undefined) {
      const at = new Map<EdgeChannel, number | null>()
      this.#hosted.set(wanted.id, {
        wanted,
        at,
        isWorking: false,
        failures: 0,
        dueMs: -Infinity,
        fault: '',
      })
      this.judge()
      return
    }
    known.wanted = wanted
    this.#send(known, edgeContentType.updateBind, healthHeaders(wanted))
  }

  withdraw(id: string): void {
    const hosted = this.#hosted.get(id)
    if (hosted === undefined) return
    this.#hosted.delete(id)
    for (const [router, connectionId] of hosted.at) {
      if (connectionId !== null) router.unbind(connectionId)
    }
  }

  sendHealth(id: string, isHealthy: boolean): void {
    const hosted = this.#hosted.get(id)
    if (hosted === undefined) return
    this.#send(hosted, edgeContentType.healthEvent, [
      [edgeHeaderKey.healthStatus, encodeFlag(isHealthy)],
    ])
  }

  /** Retries postponed bind requests now, because the sessions or edge routers have changed. */
  retry(): void {
    for (const hosted of this.#hosted.values()) {
      hosted.failures = 0
      hosted.dueMs = -Infinity
    }
    this.judge()
  }

  /** Sends bind requests for terminators that are not hosted at enough edge routers yet. */
  judge(): void {
    const open = this.#deps.routers()
    if (open.length === 0) return
    const nowMs = this.#deps.clock.monotonicMs()
    for (const [id, hosted] of this.#hosted) {
      const isWanting = hosted.at.size < Math.min(hostedAtMax, open.length)
      if (!isWanting || hosted.isWorking || nowMs < hosted.dueMs) continue
      hosted.isWorking = true
      const isTaken = this.#pool.run(id, () => this.#work(hosted))
      if (!isTaken) hosted.isWorking = false
    }
  }

  #send(
    hosted: Hosted,
    contentType: number,
    headers: readonly (readonly [number, Uint8Array])[],
  ): void {
    for (const [router, connectionId] of hosted.at) {
      if (connectionId !== null) router.sendForBind(contentType, connectionId, headers)
    }
  }

  #isWanted(hosted: Hosted): boolean {
    return this.#hosted.get(hosted.wanted.id) === hosted
  }

  async #work(hosted: Hosted): Promise<void> {
    try {
      if (this.#isWanted(hosted)) await this.#hostAtMore(hosted)
    } catch (error) {
      this.#putOff(hosted, errorMessage(error))
    } finally {
      hosted.isWorking = false
    }
  }

  async #hostAtMore(hosted: Hosted): Promise<void> {
    const { sessions, routers, clock, log } = this.#deps
    const { serviceId } = hosted.wanted
    const session = await sessions.of(serviceId, 'Bind')
    const usable = routers().filter(({ routerName }) => session.routers.has(routerName))
    const free = usable.filter((router) => !hosted.at.has(router))
    for (const router of free.slice(0, Math.max(0, hostedAtMax - hosted.at.size))) {
      await this.#hostAt(hosted, router, session.token)
      const service = this.#deps.serviceName(serviceId)
      log.info({ serviceId, service, router: router.routerName }, 'service hosted')
    }
    if (usable.length > 0 || session.openedMs > clock.monotonicMs() - bindAgainMsMax) {
      if (usable.length === 0) this.#putOff(hosted, noRouter)
      // Waits `bindAgainMsMax` if no further edge router can currently host the terminator.
      else if (free.length === 0) hosted.dueMs = clock.monotonicMs() + bindAgainMsMax
      return
    }
    // Drops the cached session: it lists only the edge routers that existed when it was created,
    // and the next attempt requests a new session.
    sessions.forget(serviceId, 'Bind')
  }

  async #hostAt(hosted: Hosted, router: EdgeChannel, token: string): Promise<void> {
    const { wanted } = hosted
    hosted.at.set(router, null)
    try {
      const connectionId = await router.bind(token, bindHeaders(wanted), {
        onDial: (dial) => this.#dial(hosted, dial),
        onEstablished: () => {
          hosted.failures = 0
          hosted.fault = ''
        },
        onClosed: (reason) => this.#onClosed(hosted, router, reason),
      })
      if (!this.#isWanted(hosted)) router.unbind(connectionId)
      else if (hosted.at.has(router)) hosted.at.set(router, connectionId)
      if (hosted.wanted !== wanted) {
        router.sendForBind(edgeContentType.updateBind, connectionId, healthHeaders(hosted.wanted))
      }
    } catch (error) {
      hosted.at.delete(router)
      this.#deps.sessions.forget(wanted.serviceId, 'Bind')
      throw error
    }
  }

  #onClosed(hosted: Hosted, router: EdgeChannel, reason: string): void {
    hosted.at.delete(router)
    if (!this.#isWanted(hosted)) return
    if (router.isOpen) {
      // Drops the cached session, because the session that was used for the bind request may have
      // ended.
      this.#deps.sessions.forget(hosted.wanted.serviceId, 'Bind')
      this.#putOff(hosted, reason)
    } else this.judge()
  }

  #putOff(hosted: Hosted, reason: string): void {
    const { clock, random, log } = this.#deps
    if (!this.#isWanted(hosted)) return
    const waitMs = Math.min(bindAgainMsMin * 2 ** Math.min(hosted.failures, 16), bindAgainMsMax)
    hosted.failures += 1
    hosted.dueMs = clock.monotonicMs() + waitMs / 2 + (random.next() * waitMs) / 2
    if (hosted.fault === reason) return
    hosted.fault = reason
    const { serviceId } = hosted.wanted
    const service = this.#deps.serviceName(serviceId)
    log.warn({ serviceId, service, reason }, 'service not hosted; trying again')
  }

  async #dial(hosted: Hosted, dial: IncomingDial): Promise<ReadonlyMap<number, Uint8Array>> {
    const { counts, serviceName } = this.#deps
    const service = serviceName(hosted.wanted.serviceId)
    try {
      const answer = await this.#dialTarget(hosted, dial)
      counts.hostedDials.add(service, 'success')
      return answer
    } catch (error) {
      counts.hostedDials.add(service, 'failed')
      const { serviceId } = hosted.wanted
      const fields = { serviceId, service, dialerId: dial.dialerId, reason: errorMessage(error) }
      this.#failures.warnOf(serviceId, 'hosted service not reached for a client', fields)
      throw error
    }
  }

  #dialTarget(hosted: Hosted, dial: IncomingDial): Promise<ReadonlyMap<number, Uint8Array>> {
    const { id, address, controllerId, peerData, dialerId } = dial
    return this.#deps.dialer().dial(
      {
        circuit: { id, address, owner: { id: controllerId }, isTerminator: true },
        dialedBy: dialerId,
        destination: hosted.wanted.id,
        peerData,
        timeoutMs: dialMs,
      },
      AbortSignal.timeout(dialMs),
    )
  }
}

const noRouter =
  'no edge router that may host it is connected: check its service edge router policies, and the edge router policies of the identity'

function healthHeaders({ cost, precedence }: RequestedTunnelTerminator) {
  return [
    [edgeHeaderKey.cost, Uint8Array.of(cost, cost >>> 8)],
    [edgeHeaderKey.precedence, Uint8Array.of(terminatorPrecedence[precedence])],
  ] as const
}

function bindHeaders(wanted: RequestedTunnelTerminator) {
  const { id, instanceId, publicKey } = wanted
  return [
    ...healthHeaders(wanted),
    [edgeHeaderKey.listenerId, encodeText(id)] as const,
    ...(publicKey === undefined ? [] : [[edgeHeaderKey.publicKey, publicKey] as const]),
    ...(instanceId === ''
      ? []
      : [[edgeHeaderKey.terminatorIdentity, encodeText(instanceId)] as const]),
  ]
}
