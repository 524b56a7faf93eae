import type { Clock } from '../../lib/clock.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { interfacesMessage } from '../../channel/messages/reports.ts'
import { hostInterfaces } from './host-interfaces.ts'
import { reportLimits } from './limits.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

interface SentReport {
  readonly text: string
  readonly atMs: number
}

interface InterfaceReporterDeps {
  readonly config: RouterConfig['interfaceDiscovery']
  readonly requestTimeoutMs: number
  readonly clock: Clock
  readonly connections: () => readonly ControlConnection[]
}

/**
 * Reports the host's network interfaces to each controller: when the controller connects, when
 * interfaces change, and periodically.
 */
export class InterfaceReporter {
  readonly #deps: InterfaceReporterDeps
  /** The last report that each controller has answered; a new connection has none. */
  readonly #sent = new WeakMap<ControlConnection, SentReport>()
  readonly #asking = new WeakSet<ControlConnection>()
  #stopTimer: (() => void) | null = null

  constructor(deps: InterfaceReporterDeps) {
    this.#deps = deps
  }

  start(): void {
    const { disabled, checkInterval } = this.#deps.config
    if (disabled) return
    const everyMs = Math.min(checkInterval, reportLimits.interfacesAgainMs)
    this.#stopTimer = periodicScheduler.every(everyMs, () => this.reportAll())
  }

  stop(): void {
    this.#stopTimer?.()
  }

  reportAll(): void {
    if (this.#deps.config.disabled) return
    for (const connection of this.#deps.connections()) void this.#report(connection)
  }

  async #report(connection: ControlConnection): Promise<void> {
    const { clock, config, requestTimeoutMs } = this.#deps
    const interfaces = hostInterfaces()
    const text = JSON.stringify(interfaces)
    const sent = this.#sent.get(connection)
    const isDue = sent === undefined || clock.monotonicMs() - sent.atMs >= config.minReportInterval
    if ((!isDue && sent.text === text) || this.#asking.has(connection)) return
    this.#asking.add(connection)
    try {
      await connection.channel.request(interfacesMessage(interfaces), requestTimeoutMs)
      this.#sent.set(connection, { text, atMs: clock.monotonicMs() })
    } catch {
      // The report failed because the channel has closed or the controller did not respond; the
      // next check repeats it.
    } finally {
      this.#asking.delete(connection)
    }
  }
}
