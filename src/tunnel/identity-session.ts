import type { Clock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-code.ts'
import type { Random } from '../lib/random.ts'
import { ProgramFailure } from '../overlay/failure.ts'
import type { ProgramLogger } from '../overlay/logger.ts'
import { serviceLimits } from '../overlay/services/limits.ts'
import {
  type ControllerApi,
  objectOrEmpty,
  LogInRefusedError,
  readRecords,
  SessionEndedError,
  readTextField,
} from './controller-api.ts'
import type { IdentityCertificateRenewer } from './identity-certificate-renewer.ts'
import type { TunnelCounts } from './tunnel-counts.ts'
import type { FollowedServices } from './followed-services.ts'
import { tunnelLimits } from './limits.ts'
import {
  readControllerOrigins,
  type UsableEdgeRouter,
  readEdgeRouters,
} from './edge-router-addresses.ts'

interface IdentitySessionDeps {
  readonly api: ControllerApi
  readonly renewal: IdentityCertificateRenewer
  readonly services: FollowedServices
  readonly counts: Pick<TunnelCounts, 'logIns' | 'polls'>
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  /**
   * Called when a new API session exists. Service sessions and channels of the previous API session
   * are invalid.
   */
  readonly onSession: (token: string) => void
  readonly onServices: () => void
  /**
   * Whether the last list of edge routers was not empty. The list omits edge routers that are
   * offline.
   */
  readonly knowsRouters: () => boolean
  readonly onRouters: (routers: readonly UsableEdgeRouter[]) => void
}

const { askedEveryMs, refreshedEveryMs, askAgainMsMin, askAgainMsMax, recordsPerPage } =
  tunnelLimits

/**
 * The API session of an identity. Logs in again when the session has ended, keeps it alive by using
 * it, and polls for service updates. While no controller responds, the last known state stays in
 * effect.
 */
export class IdentitySession {
  readonly #deps: IdentitySessionDeps
  /** Token of the API session; null if there is no session. */
  #token: string | null = null
  #identityId = ''
  #controllers: readonly string[] = []
  #changedAt: string | null = null
  #refreshedMs = -Infinity
  #failures = 0
  #fault = ''
  #timer: NodeJS.Timeout | null = null
  #isWorking = false
  #isHurried = false
  #isStopped = false
  #endPause: () => void = () => undefined

  constructor(deps: IdentitySessionDeps) {
    this.#deps = deps
  }

  /** Token of the API session; null if there is no session. */
  get token(): string | null {
    return this.#token
  }

  get controllers(): readonly string[] {
    return this.#controllers
  }

  /**
   * Creates the first session as soon as a controller responds.
   * @returns the id of the identity; null if `stop` was called first.
   * @throws {ProgramFailure} when the log-in is refused.
   */
  async open(): Promise<string | null> {
    while (!this.#isStopped) {
      try {
        await this.#logIn()
        return this.#isStopped ? null : this.#identityId
      } catch (error) {
        if (error instanceof LogInRefusedError)
          throw new ProgramFailure(error.message, { cause: error })
        if (!this.#isStopped) await this.#paused(this.#waitAfter(error))
      }
    }
    return null
  }

  start(): void {
    void this.#work()
  }

  /**
   * Reads the list of edge routers again soon, because the known edge routers cannot be reached.
   */
  hurry(): void {
    // Does not restart a wait that has begun, because each disconnected edge router causes a call.
    if (this.#isStopped || this.#isHurried) return
    this.#refreshedMs = -Infinity
    this.#isHurried = true
    if (this.#timer !== null && this.#failures === 0) this.#schedule(askAgainMsMin)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#endPause()
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#token === null) return
    this.#token = null
    // Ignores an error: the session then expires by itself.
    await this.#deps.api.logOut(tunnelLimits.logOutMs).catch(() => undefined)
  }

  async #paused(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#endPause = resolve
    const timer = setTimeout(resolve, waitMs)
    await promise
    clearTimeout(timer)
  }

  #schedule(waitMs: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#work(), waitMs)
  }

  async #work(): Promise<void> {
    if (this.#isStopped || this.#isWorking) return
    this.#timer = null
    this.#isWorking = true
    this.#isHurried = false
    const waitMs = await this.#step()
    this.#isWorking = false
    if (this.#isStopped) return
    const isHurried = this.#isHurried && this.#failures === 0
    this.#schedule(isHurried ? Math.min(waitMs, askAgainMsMin) : waitMs)
  }

  /** @returns the time to wait before the next step, ms. */
  async #step(): Promise<number> {
    try {
      if (this.#token === null) await this.#logIn()
      await this.#poll()
      if (this.#failures > 0) this.#deps.log.info({}, 'controllers answer again')
      this.#failures = 0
      this.#fault = ''
      await this.#deps.renewal.judge(this.#identityId)
      return askedEveryMs
    } catch (error) {
      if (this.#isStopped) return askedEveryMs
      return this.#waitAfter(error)
    }
  }

  #waitAfter(error: unknown): number {
    if (error instanceof SessionEndedError) this.#token = null
    const reason = errorMessage(error).slice(0, tunnelLimits.reasonCharactersMax)
    if (reason !== this.#fault) {
      const what = this.#token === null ? 'no session' : 'no controller could be reached'
      this.#deps.log.warn({ reason }, `${what}; trying again`)
    }
    this.#fault = reason
    this.#failures += 1
    const waitMs = Math.min(askAgainMsMin * 2 ** Math.min(this.#failures, 16), askAgainMsMax)
    return waitMs / 2 + (this.#deps.random.next() * waitMs) / 2
  }

  async #logIn(): Promise<void> {
    const { logIns } = this.#deps.counts
    try {
      await this.#openSession()
      logIns.add('success')
    } catch (error) {
      logIns.add(error instanceof LogInRefusedError ? 'refused' : 'failed')
      throw error
    }
  }

  async #openSession(): Promise<void> {
    const { renewal, log, onSession } = this.#deps
    const { token, identityId, identityName, lacks } = await renewal.logIn()
    if (this.#isStopped) return
    if (lacks !== null) throw new LogInRefusedError(lacks)
    if (this.#identityId !== '' && identityId !== this.#identityId) {
      throw new Error('the certificate belongs to another identity now')
    }
    this.#token = token
    this.#identityId = identityId
    this.#changedAt = null
    this.#refreshedMs = -Infinity
    log.info({ identityId, identity: identityName }, 'session opened')
    onSession(token)
  }

  async #poll(): Promise<void> {
    const { polls } = this.#deps.counts
    try {
      await this.#follow()
      polls.add('success')
    } catch (error) {
      polls.add(error instanceof SessionEndedError ? 'refused' : 'failed')
      throw error
    }
  }

  async #follow(): Promise<void> {
    const { api, clock, knowsRouters } = this.#deps
    const updates = objectOrEmpty(await api.get('/current-api-session/service-updates'))
    const changedAt = readTextField(updates, 'lastChangeAt')
    const isOld = clock.monotonicMs() - this.#refreshedMs >= refreshedEveryMs
    const isDue = isOld || !knowsRouters()
    if (isDue) await this.#refresh()
    if (changedAt === this.#changedAt) return
    await this.#loadServices()
    // Stores the time from before the read, so that the next poll detects services that changed
    // during the read.
    this.#changedAt = changedAt
  }

  async #refresh(): Promise<void> {
    const { api, services, onRouters, onServices, clock } = this.#deps
    const isOther = services.setIdentity(objectOrEmpty(await api.get('/current-identity')))
    onRouters(readEdgeRouters(await this.#all('/current-identity/edge-routers')))
    const controllers = readControllerOrigins(await api.get('/controllers'))
    if (controllers.length > 0) {
      this.#controllers = controllers
      api.follow(controllers)
    }
    this.#refreshedMs = clock.monotonicMs()
    if (isOther && this.#changedAt !== null) onServices()
  }

  async #loadServices(): Promise<void> {
    const { services, onServices } = this.#deps
    services.setServices(await this.#all('/services'))
    onServices()
  }

  /**
   * The records of a list, read page by page until there are no more, or `tunnelServicesMax` are
   * read.
   */
  async #all(path: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const found: Readonly<Record<string, unknown>>[] = []
    for (;;) {
      const page = `${path}?limit=${recordsPerPage}&offset=${found.length}`
      const records = readRecords(await this.#deps.api.get(page))
      found.push(...records)
      const isWhole = records.length < recordsPerPage
      if (isWhole || found.length >= serviceLimits.tunnelServicesMax) return found
    }
  }
}
