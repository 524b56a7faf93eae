import type { ChannelMessage } from '../../channel/frame.ts'
import { readFlag } from '../../channel/headers.ts'
import { KeyedRate } from '../../lib/bounds/keyed-rate.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { edgeLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { ClientChannel } from './client-channel.ts'
import {
  healthEventMessage,
  modelPrecedence,
  updateEdgeTerminatorMessage,
} from '../../channel/messages/terminators.ts'
import { edgeHeaderKey, readUint16 } from '../../channel/messages/edge.ts'
import { hostCredentials, type HostedTerminator } from './hosted-terminator.ts'

const { terminatorChangedEveryMs, hostChangesBurst, hostChangesPerSecond, hostedMax } = edgeLimits

export interface TerminatorChangeReporterDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Pick<ProgramLogger, 'info'>
  /** Null if no controller is connected. */
  readonly controllerFor: (client: ClientChannel) => ControlConnection | null
}

/** The latest values from a host that are not sent yet; a null value is unchanged. */
interface Change {
  readonly cost: number | null
  readonly precedence: number | null
  readonly isHealthy: boolean | null
}

const UNCHANGED: Change = { cost: null, precedence: null, isHealthy: null }

/**
 * Changes that hosts make to their terminators. Each reported change is a cluster write, so the
 * rate is limited per terminator and per identity. Only the latest values are sent.
 */
export class TerminatorChangeReporter {
  readonly #deps: TerminatorChangeReporterDeps
  readonly #rate: KeyedRate
  readonly #waiting = new Map<HostedTerminator, Change>()

  constructor(deps: TerminatorChangeReporterDeps) {
    this.#deps = deps
    const rate = { burst: hostChangesBurst, perSecond: hostChangesPerSecond, keysMax: hostedMax }
    this.#rate = new KeyedRate(rate, deps.clock)
  }

  /** Notes a change of cost or precedence that the host has requested. */
  update(terminator: HostedTerminator, { headers }: ChannelMessage): void {
    const cost = readUint16(headers, edgeHeaderKey.cost)
    const precedence = headers.get(edgeHeaderKey.precedence)?.[0] ?? null
    const before = this.#waiting.get(terminator) ?? UNCHANGED
    this.#wait(terminator, {
      // @guard host-that-changes-its-mind--latest
      cost: cost ?? before.cost,
      precedence: precedence ?? before.precedence,
      // A host may report its health directly or as a precedence. The later of the two reports
      // counts.
      isHealthy: precedence === null ? before.isHealthy : null,
    })
  }

  /** The host reports its health. */
  onHealth(terminator: HostedTerminator, { headers }: ChannelMessage): void {
    const { cost } = this.#waiting.get(terminator) ?? UNCHANGED
    const isHealthy = readFlag(headers, edgeHeaderKey.healthStatus)
    this.#wait(terminator, { cost, precedence: null, isHealthy })
  }

  /** Sends the changes that are due. */
  sweep(): void {
    for (const terminator of Array.from(this.#waiting.keys())) this.#report(terminator)
  }

  /** Discards the pending change of a terminator that has been removed. */
  drop(terminator: HostedTerminator): void {
    this.#waiting.delete(terminator)
  }

  #wait(terminator: HostedTerminator, change: Change): void {
    this.#waiting.set(terminator, change)
    this.#report(terminator)
  }

  #report(terminator: HostedTerminator): void {
    const { clock, log, controllerFor } = this.#deps
    const { id, client } = terminator
    const change = this.#waiting.get(terminator)
    const nowMs = clock.monotonicMs()
    const controller = controllerFor(client)
    // @guard host-that-changes-its-mind--terminator
    if (change === undefined || controller === null || nowMs < terminator.changeDueMs) return
    // @guard host-that-changes-its-mind--identity
    if (!this.#rate.take(client.client.session.identityId)) return
    this.#waiting.delete(terminator)
    terminator.changeDueMs = nowMs + terminatorChangedEveryMs
    const { cost, precedence, isHealthy } = change
    const claim = { ...hostCredentials(terminator), terminatorId: id }
    if (cost !== null || precedence !== null) {
      log.info({ terminatorId: id, cost, precedence }, 'host changes its terminator')
      const update = {
        updateCost: cost !== null,
        cost: cost ?? 0,
        updatePrecedence: precedence !== null,
        precedence: modelPrecedence(precedence ?? 0),
      }
      controller.channel.send(updateEdgeTerminatorMessage({ ...claim, ...update }))
    }
    if (isHealthy === null) return
    controller.channel.send(healthEventMessage({ ...claim, checkPassed: isHealthy }))
  }
}
