import { randomUUID } from 'node:crypto'

import type { Channel } from '../../channel/channel.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { usageMessage } from '../../channel/messages/reports.ts'
import type { CircuitUsageCounters } from '../forward/circuit-usage-counters.ts'
import { reportLimits } from './limits.ts'

interface UsageReporterDeps {
  readonly routerId: string
  readonly clock: Pick<Clock, 'nowMs'>
  readonly usages: CircuitUsageCounters
  readonly connections: () => readonly ControlConnection[]
}

/**
 * Reports the bytes of circuits to one controller, which publishes them. While no controller is
 * connected or the controller reads slowly, the counters accumulate, so that several intervals need
 * no more memory than one.
 */
export class UsageReporter {
  readonly #deps: UsageReporterDeps
  /** The channel whose queue was full, until the channel has sent it; otherwise null. */
  #waitsFor: Channel | null = null

  constructor(deps: UsageReporterDeps) {
    this.#deps = deps
    deps.usages.onFull = () => this.sendUsage()
  }

  /** Reports the bytes counted so far. */
  sendUsage(): void {
    const { routerId, clock, usages, connections } = this.#deps
    const channel = connections()[0]?.channel
    // Builds no report while the channel is full: this method is called often, and building a
    // report is expensive.
    if (channel === undefined || channel === this.#waitsFor) return
    this.#waitsFor = null
    const said = { eventId: randomUUID(), atMs: clock.nowMs() }
    const isAll = usages.sendUsage((report) =>
      channel.trySend(usageMessage(routerId, report, said), reportLimits.usageQueuedBytesMax),
    )
    if (isAll) return
    this.#waitsFor = channel
    channel.onceWritable(this.#reportRest)
  }

  readonly #reportRest = (): void => {
    this.#waitsFor = null
    this.sendUsage()
  }
}
