import type { Clock } from '../../lib/clock.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import { durationText } from '../../lib/text/duration-text.ts'
import { errorMessage } from '../../lib/error-code.ts'

interface HealthCheckDeps {
  readonly id: string
  readonly intervalMs: number
  readonly initialDelayMs: number
  /** The check. Throws on failure; returns details to show, or undefined. */
  readonly run: () => unknown
  readonly clock: Clock
}

/** Runs a check periodically and stores its last result. */
export class HealthCheck {
  readonly id: string
  readonly #deps: HealthCheckDeps
  #startTimer: NodeJS.Timeout | null = null
  #stopRuns: (() => void) | null = null
  #isRunning = false
  #lastMs: number | null = null
  #tookMs = 0
  #error: string | null = null
  #failures = 0
  #failingSinceMs: number | null = null
  #details: unknown = undefined

  constructor(deps: HealthCheckDeps) {
    this.#deps = deps
    this.id = deps.id
  }

  start(): void {
    this.#startTimer = setTimeout(() => {
      void this.run()
      this.#stopRuns = periodicScheduler.every(this.#deps.intervalMs, () => void this.run())
    }, this.#deps.initialDelayMs)
  }

  stop(): void {
    if (this.#startTimer !== null) clearTimeout(this.#startTimer)
    this.#stopRuns?.()
  }

  async run(): Promise<void> {
    const { clock, run } = this.#deps
    if (this.#isRunning) return
    this.#isRunning = true
    const begunMs = clock.monotonicMs()
    try {
      this.#details = await run()
      this.#error = null
      this.#failures = 0
      this.#failingSinceMs = null
    } catch (error) {
      this.#error = errorMessage(error)
      this.#failures += 1
      this.#failingSinceMs ??= clock.nowMs()
    } finally {
      this.#isRunning = false
    }
    this.#tookMs = clock.monotonicMs() - begunMs
    this.#lastMs = clock.nowMs()
  }

  /** Null until the check has run. */
  get isHealthy(): boolean | null {
    return this.#lastMs === null ? null : this.#error === null
  }

  shown(isShort: boolean): Readonly<Record<string, unknown>> {
    const healthy = this.#error === null && this.#lastMs !== null
    if (isShort || this.#lastMs === null) return { id: this.id, healthy }
    return {
      id: this.id,
      healthy,
      lastCheckDuration: durationText(this.#tookMs),
      lastCheckTime: new Date(this.#lastMs).toISOString(),
      ...(this.#details === undefined ? {} : { details: this.#details }),
      ...(this.#error === null
        ? {}
        : {
            err: this.#error,
            consecutiveFailures: this.#failures,
            failingSince: new Date(this.#failingSinceMs ?? this.#lastMs).toISOString(),
          }),
    }
  }
}

/** The response of OpenZiti's health-checks API. */
export function healthResponse(checks: readonly HealthCheck[], isShort: boolean): object {
  return {
    data: {
      checks: checks.map((check) => check.shown(isShort)),
      healthy: checks.every(({ isHealthy }) => isHealthy === true),
    },
    meta: {},
  }
}
