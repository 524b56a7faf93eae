import { randomUUID } from 'node:crypto'

import type { Channel } from '../../channel/channel.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { usageMessage } from '../../channel/messages/reports.ts'
import type { CircuitUsages } from '../forward/circuit-usages.ts'
import { reportLimits } from './limits.ts'

export interface UsageReporterDeps {
  readonly routerId: string
  readonly clock: Pick<Clock, 'nowMs'>
  readonly usages: CircuitUsages
  readonly connections: () => readonly ControlConnection[]
}

/**
 * Tells one controller, which passes it on, the bytes of circuits. While none is connected, or the
 * one reads slowly, they wait in their counts, where many intervals take the room of one.
 */
export class UsageReporter {
  readonly #deps: UsageReporterDeps
  /** The channel that had no room, until it has written all that waits. */
  #waitsFor: Channel | null = null

  constructor(deps: UsageReporterDeps) {
    this.#deps = deps
    deps.usages.onFull = () => this.sendUsage()
  }

  /** Sends what was counted up to now. */
  sendUsage(): void {
    const { routerId, clock, usages, connections } = this.#deps
    const channel = connections()[0]?.channel
    // A report is made anew for each attempt, which would cost too much for each frame.
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
