import type { ChannelMessage } from '../../channel/frame.ts'
import { readFlag } from '../../channel/headers.ts'
import { KeyedTokenBuckets } from '../../lib/bounds/keyed-token-buckets.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import { edgeLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { ClientChannel } from './client-channel.ts'
import {
  healthEventMessage,
  toModelPrecedence,
  updateEdgeTerminatorMessage,
} from '../../channel/messages/terminators.ts'
import { edgeHeaderKey, readUint16 } from '../../channel/messages/edge.ts'
import { hostCredentials, type HostedTerminator } from './hosted-terminator.ts'

const { terminatorChangedEveryMs, hostChangesBurst, hostChangesPerSecond, hostedMax } = edgeLimits

export interface TerminatorChangeReporterDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Pick<ProgramLogger, 'info'>
  /** The controller for requests of this client; null if no controller is connected. */
  readonly controllerFor: (client: ClientChannel) => ControlConnection | null
}

/** The latest values of a terminator that were not sent yet; null for a value without a change. */
interface Change {
  readonly cost: number | null
  readonly precedence: number | null
  readonly isHealthy: boolean | null
}

const UNCHANGED: Change = { cost: null, precedence: null, isHealthy: null }

/**
 * Reports changes of terminators that hosts request. Each report is a write to the cluster's log,
 * so the rate is limited for each terminator and each identity, and only the latest values are
 * sent.
 */
export class TerminatorChangeReporter {
  readonly #deps: TerminatorChangeReporterDeps
  readonly #rate: KeyedTokenBuckets
  readonly #waiting = new Map<HostedTerminator, Change>()

  constructor(deps: TerminatorChangeReporterDeps) {
    this.#deps = deps
    const rate = { burst: hostChangesBurst, perSecond: hostChangesPerSecond, keysMax: hostedMax }
    this.#rate = new KeyedTokenBuckets(rate, deps.clock)
  }

  /**
   * Sends a change of cost or precedence that the host has requested, as soon as the rate permits
   * it.
   */
  update(terminator: HostedTerminator, { headers }: ChannelMessage): void {
    const cost = readUint16(headers, edgeHeaderKey.cost)
    const precedence = headers.get(edgeHeaderKey.precedence)?.[0] ?? null
    const before = this.#waiting.get(terminator) ?? UNCHANGED
    this.#wait(terminator, {
      // @guard host-that-changes-its-mind--latest
      cost: cost ?? before.cost,
      precedence: precedence ?? before.precedence,
      // A host may report its health as such or as a precedence; the later report replaces the
      // earlier one.
      isHealthy: precedence === null ? before.isHealthy : null,
    })
  }

  /** Sends the health that the host has reported, as soon as the rate permits it. */
  onHealth(terminator: HostedTerminator, { headers }: ChannelMessage): void {
    const { cost } = this.#waiting.get(terminator) ?? UNCHANGED
    const isHealthy = readFlag(headers, edgeHeaderKey.healthStatus)
    this.#wait(terminator, { cost, precedence: null, isHealthy })
  }

  /** Sends the changes whose wait is over. */
  sweep(): void {
    for (const terminator of Array.from(this.#waiting.keys())) this.#report(terminator)
  }

  /** Discards the change of a terminator that has been removed. */
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
        precedence: toModelPrecedence(precedence ?? 0),
      }
      controller.channel.send(updateEdgeTerminatorMessage({ ...claim, ...update }))
    }
    if (isHealthy === null) return
    controller.channel.send(healthEventMessage({ ...claim, checkPassed: isHealthy }))
  }
}
