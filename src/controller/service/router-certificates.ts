import { X509Certificate } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'

import type { AlarmRaiser } from '../../cluster/alarm-table.ts'
import type { Router } from '../../entities/kinds/router.ts'
import type { Clock } from '../../lib/clock.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import { renewsWithAThirdLeft } from '../../lib/router-capabilities.ts'
import type { RouterStatuses } from '../../ports/router-status.ts'

const DAY_MS = 24 * 60 * 60_000
const LOOK_MS = 10 * 60_000
/** Number of routers to check before the event loop does other work. */
const ROUTERS_PER_TURN = 64

/**
 * Remaining lifetime at which a router is late with the renewal of its certificate. Flotilla
 * routers renew when a third is left, OpenZiti routers seven days before the end.
 */
const overdue = {
  flotilla: { leftMs: 30 * DAY_MS, fraction: 1 / 4 },
  others: { leftMs: 6 * DAY_MS, fraction: 1 / 8 },
} as const

interface RouterCertificateDeps {
  readonly routers: {
    ids(kind: 'router'): Iterable<string>
    get(kind: 'router', id: string): Router | undefined
  }
  readonly statuses: Pick<RouterStatuses, 'of'>
  readonly alarms: AlarmRaiser
  readonly clock: Clock
}

interface Life {
  readonly certPem: string
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/**
 * Raises an alarm for routers that have not renewed their certificates. It checks the certificate
 * in the router's record, so it also covers OpenZiti routers and routers that are switched off.
 */
export class RouterCertificateWatch {
  readonly #deps: RouterCertificateDeps
  /** Validity periods of the routers' certificates, by router ID. */
  #lives = new Map<string, Life>()
  /**
   * IDs of routers that have announced, since this controller started, that they renew with a third
   * of the lifetime left.
   */
  #early = new Set<string>()
  #stopTimer: (() => void) | null = null
  #isLooking = false

  constructor(deps: RouterCertificateDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#stopTimer ??= periodicScheduler.every(LOOK_MS, () => void this.look())
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  /** Checks all routers, a few in each turn of the event loop. */
  async look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const lives = new Map<string, Life>()
    const early = new Set<string>()
    const found: { readonly name: string; readonly notAfterMs: number }[] = []
    for (const [at, id] of [...this.#deps.routers.ids('router')].entries()) {
      if (at % ROUTERS_PER_TURN === ROUTERS_PER_TURN - 1) await setImmediate()
      const router = this.#deps.routers.get('router', id)
      if (router === undefined || !router.isVerified || router.disabled) continue
      const life = this.#lifeOf(router)
      if (life === null) continue
      lives.set(id, life)
      if (this.#renewsEarly(id)) early.add(id)
      const { name } = router
      if (this.#isOverdue(life, early.has(id))) found.push({ name, notAfterMs: life.notAfterMs })
    }
    this.#lives = lives
    this.#early = early
    this.#isLooking = false
    found.sort((a, b) => a.notAfterMs - b.notAfterMs)
    if (found.length === 0) this.#deps.alarms.clear('ROUTER_CERTIFICATE_EXPIRES')
    else this.#deps.alarms.raise('ROUTER_CERTIFICATE_EXPIRES', { routers: found })
  }

  #lifeOf({ id, certPem }: Router): Life | null {
    if (certPem === null) return null
    const known = this.#lives.get(id)
    if (known?.certPem === certPem) return known
    try {
      const { validFromDate, validToDate } = new X509Certificate(certPem)
      return { certPem, notBeforeMs: validFromDate.getTime(), notAfterMs: validToDate.getTime() }
    } catch {
      return null
    }
  }

  /**
   * Whether a router renews with a third of the lifetime left. For a disconnected router, its last
   * announcement applies.
   */
  #renewsEarly(id: string): boolean {
    const status = this.#deps.statuses.of(id)
    return status === null
      ? this.#early.has(id)
      : renewsWithAThirdLeft(new Set(status.capabilities))
  }

  #isOverdue({ notBeforeMs, notAfterMs }: Life, isEarly: boolean): boolean {
    const { leftMs, fraction } = isEarly ? overdue.flotilla : overdue.others
    const lifetimeMs = notAfterMs - notBeforeMs
    return notAfterMs - this.#deps.clock.nowMs() <= Math.min(leftMs, lifetimeMs * fraction)
  }
}
