import { randomUUID } from 'node:crypto'

import type { Clock } from '../../lib/clock.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { MetricsBatch } from '../../channel/messages/reports.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

interface QueuedBatch {
  readonly batch: MetricsBatch
  /** Start of the interval that the batch covers, monotonic ms. */
  readonly beganMs: number
}

interface MetricsReporterDeps {
  readonly config: RouterConfig['metrics']
  readonly clock: Clock
  readonly figures: () => Pick<MetricsBatch, 'integers' | 'numbers' | 'latenciesNs'>
  /** @returns false if no controller is connected; the batch then stays. */
  readonly send: (batch: MetricsBatch) => boolean
}

/**
 * Reports metrics for consecutive intervals. A batch is sent when enough time has passed since the
 * start of its interval. While no controller is connected, some batches are stored; above the
 * limit, the oldest is dropped.
 */
export class MetricsReporter {
  readonly #deps: MetricsReporterDeps
  #queue: QueuedBatch[] = []
  #beganMs: number
  #stopTimer: (() => void) | null = null
  #sendTimer: NodeJS.Timeout | null = null

  constructor(deps: MetricsReporterDeps) {
    this.#deps = deps
    this.#beganMs = deps.clock.monotonicMs()
  }

  start(): void {
    this.#stopTimer = periodicScheduler.every(this.#deps.config.reportInterval, () => this.#build())
  }

  stop(): void {
    this.#stopTimer?.()
    if (this.#sendTimer !== null) clearTimeout(this.#sendTimer)
  }

  #build(): void {
    const { clock, figures, config } = this.#deps
    const batch = { eventId: randomUUID(), atMs: clock.nowMs(), ...figures() }
    this.#queue.push({ batch, beganMs: this.#beganMs })
    this.#queue = this.#queue.slice(-config.messageQueueSize)
    this.#beganMs = clock.monotonicMs()
    this.flush()
  }

  /**
   * Sends the batches whose interval began at least `intervalAgeThreshold` ago; also called when a
   * controller connects.
   */
  flush(): void {
    const { clock, config, send } = this.#deps
    for (;;) {
      const [first] = this.#queue
      if (first === undefined) return
      const waitMs = first.beganMs + config.intervalAgeThreshold - clock.monotonicMs()
      if (waitMs > 0) {
        this.#sendTimer ??= setTimeout(() => {
          this.#sendTimer = null
          this.flush()
        }, waitMs)
        return
      }
      if (!send(first.batch)) return
      this.#queue.shift()
    }
  }
}
