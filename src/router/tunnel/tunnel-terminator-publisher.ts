import { isDeepStrictEqual } from 'node:util'

import type { ChannelMessage, OutboundMessage } from '../../channel/frame.ts'
import { readFlag } from '../../channel/headers.ts'
import { channelHeaderKey } from '../../channel/numbers.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import type { Random } from '../../lib/random.ts'
import type { ControlConnection } from '../controllers/control-connection.ts'
import type { ControllerRequestLimiter } from '../controllers/controller-request-limiter.ts'
import { tunnelTerminatorLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { TerminatorPublisher } from '../../overlay/services/hosted-service-manager.ts'
import {
  tunnelTerminatorRequestMessage,
  type RequestedTunnelTerminator,
  readTunnelTerminatorResponse,
  removeTerminatorsMessage,
  tunnelHealthMessage,
  updateTunnelTerminatorMessage,
} from '../../channel/messages/terminators.ts'
import { controlContentType } from '../../channel/messages/control.ts'

const { offerWaitMsMin, offerWaitMsMax, offerTimeoutMs, offersRepeatedAfterMs, withdrawalsMax } =
  tunnelTerminatorLimits

interface TunnelTerminatorPublisherDeps {
  readonly connections: () => readonly ControlConnection[]
  readonly operations: ControllerRequestLimiter
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
}

const COST_UNKNOWN = -1
/**
 * Name of the tunnel as a caller that shares the requests to controllers fairly with identities; no
 * identity has this name.
 */
const OPERATIONS_OF_TUNNEL = ''

/** A terminator: its desired state, and the state last sent to controllers. */
interface Offer {
  readonly id: string
  /** The terminator that the controllers should have; null if they should remove it. */
  wanted: RequestedTunnelTerminator | null
  /**
   * The terminator that the controllers have; null: none, 'unknown': the outcome of a request is
   * unknown.
   */
  sent: RequestedTunnelTerminator | 'unknown' | null
  /** True if the terminator must be sent to the controllers again even if it has not changed. */
  isRepeated: boolean
  isWorking: boolean
  failures: number
  timer: NodeJS.Timeout | null
}

/** A controller has refused a request about a terminator; the message contains the reason. */
class OfferRefused extends Error {
  readonly isBusy: boolean

  constructor(reason: string, isBusy: boolean) {
    super(reason)
    this.isBusy = isBusy
  }
}

/**
 * Creates, updates and removes the tunnel's terminators at the controllers as required. It repeats
 * failed requests, and sends the requests for one terminator one after the other.
 */
export class TunnelTerminatorPublisher implements TerminatorPublisher {
  readonly #deps: TunnelTerminatorPublisherDeps
  readonly #offers = new Map<string, Offer>()
  #repeatTimer: NodeJS.Timeout | null = null
  #isStopped = false

  constructor(deps: TunnelTerminatorPublisherDeps) {
    this.#deps = deps
  }

  /** IDs of the terminators, and whether the controllers have each one. */
  get offers(): readonly { readonly id: string; readonly isEstablished: boolean }[] {
    return [...this.#offers.values()]
      .filter(({ wanted }) => wanted !== null)
      .map(({ id, sent }) => ({ id, isEstablished: sent !== null && sent !== 'unknown' }))
  }

  offer(wanted: RequestedTunnelTerminator): void {
    const offer = this.#offers.get(wanted.id) ?? {
      id: wanted.id,
      wanted,
      sent: null,
      isRepeated: false,
      isWorking: false,
      failures: 0,
      timer: null,
    }
    this.#offers.set(wanted.id, offer)
    offer.wanted = wanted
    this.#retry(offer)
  }

  withdraw(id: string): void {
    const offer = this.#offers.get(id)
    if (offer === undefined) return
    offer.wanted = null
    this.#retry(offer)
  }

  /**
   * Reports the health of a terminator's target to a controller; the report is lost if the
   * controller disconnects.
   */
  sendHealth(id: string, isHealthy: boolean): void {
    this.#controller()?.channel.send(tunnelHealthMessage(id, isHealthy))
  }

  /**
   * Sends outstanding requests immediately, and all terminators again after a delay, because the
   * controllers may have lost or removed some of them.
   */
  onConnected(): void {
    for (const offer of this.#offers.values()) if (!isSettled(offer)) this.#retry(offer)
    if (this.#repeatTimer !== null || this.#isStopped) return
    this.#repeatTimer = setTimeout(() => {
      this.#repeatTimer = null
      for (const offer of this.#offers.values()) {
        if (offer.wanted === null || offer.sent === null) continue
        // Sends the terminator again even if it has not changed: creating the same terminator twice
        // has no further effect.
        offer.isRepeated = true
        this.#retry(offer)
      }
    }, offersRepeatedAfterMs)
  }

  stop(): void {
    this.#isStopped = true
    if (this.#repeatTimer !== null) clearTimeout(this.#repeatTimer)
    for (const { timer } of this.#offers.values()) if (timer !== null) clearTimeout(timer)
  }

  /** Retries immediately instead of waiting for the rest of the delay. */
  #retry(offer: Offer): void {
    offer.failures = 0
    if (offer.timer !== null) clearTimeout(offer.timer)
    offer.timer = null
    void this.#work(offer)
  }

  async #work(offer: Offer): Promise<void> {
    const { operations } = this.#deps
    if (offer.isWorking || offer.timer !== null || this.#isStopped) return
    offer.isWorking = true
    try {
      while (!isSettled(offer) && !this.#isStopped) {
        const controller = this.#controller()
        if (controller === null) return
        await operations.run(OPERATIONS_OF_TUNNEL, () => this.#step(offer, controller))
        offer.failures = 0
      }
      if (offer.wanted === null && offer.sent === null) this.#offers.delete(offer.id)
    } catch (error) {
      this.#onFailure(offer, error)
    } finally {
      offer.isWorking = false
    }
  }

  #onFailure(offer: Offer, error: unknown): void {
    offer.failures += 1
    const { id: terminatorId, wanted } = offer
    const fields = { terminatorId, serviceId: wanted?.serviceId, reason: errorMessage(error) }
    const isBusy = error instanceof OfferRefused && error.isBusy
    if (!isBusy) this.#deps.log.warn(fields, 'a controller did not change a terminator')
    if (wanted === null && offer.failures >= withdrawalsMax) {
      // Stops trying: controllers will remove the terminator when they validate it.
      this.#offers.delete(terminatorId)
      return
    }
    if (this.#isStopped) return
    const isRefused = error instanceof OfferRefused && !isBusy
    const grown = Math.min(offerWaitMsMin * 2 ** (offer.failures - 1), offerWaitMsMax)
    const waitMs = isRefused ? offerWaitMsMax : grown
    offer.timer = setTimeout(
      () => {
        offer.timer = null
        void this.#work(offer)
      },
      waitMs / 2 + (this.#deps.random.next() * waitMs) / 2,
    )
  }

  /**
   * Sends one request to bring the terminator closer to its required state. If the outcome is
   * unknown, a later step removes the terminator first.
   */
  async #step(offer: Offer, controller: ControlConnection): Promise<void> {
    const { wanted, sent, id } = offer
    if (isSettled(offer)) return
    if (wanted === null || sent === 'unknown') {
      await this.#asked(controller, removeTerminatorsMessage([id]))
      offer.sent = null
    } else if (offer.isRepeated || sent === null) await this.#create(offer, wanted, controller)
    else if (isSameButForHealth(sent, wanted)) {
      const { cost, precedence } = wanted
      // If the update fails, a later step removes the terminator and creates it again.
      offer.sent = 'unknown'
      await this.#asked(controller, updateTunnelTerminatorMessage(id, cost, precedence))
      offer.sent = wanted
    } else offer.sent = 'unknown'
  }

  async #create(
    offer: Offer,
    wanted: RequestedTunnelTerminator,
    { channel, id: controllerId }: ControlConnection,
  ): Promise<void> {
    const message = tunnelTerminatorRequestMessage(wanted, this.#deps.clock.nowMs())
    const { sent } = offer
    offer.isRepeated = false
    // Without a response, the controllers may or may not have the terminator.
    offer.sent = 'unknown'
    const reply = await channel.request(message, offerTimeoutMs)
    if (reply.contentType !== controlContentType.createTunnelTerminatorV2Response)
      throw failureOf(reply)
    const { outcome, message: reason } = readTunnelTerminatorResponse(reply.body)
    if (outcome === 'created') {
      // An earlier process of this router may have created the terminator with another cost, so the
      // cost is updated next.
      offer.sent = sent === null ? { ...wanted, cost: COST_UNKNOWN } : wanted
      const fields = { terminatorId: offer.id, serviceId: wanted.serviceId, controllerId }
      if (sent === null) this.#deps.log.info(fields, 'service hosted')
    } else if (outcome !== 'taken') {
      offer.sent = sent
      throw new OfferRefused(reason, outcome === 'busy')
    }
  }

  async #asked({ channel }: ControlConnection, message: OutboundMessage): Promise<void> {
    const reply = await channel.request(message, offerTimeoutMs)
    const isDone =
      reply.contentType === controlContentType.updateTunnelTerminatorResponse ||
      readFlag(reply.headers, channelHeaderKey.resultSuccess)
    if (!isDone) throw failureOf(reply)
  }

  /** A random connected controller; followers forward the write to the leader. */
  #controller(): ControlConnection | null {
    const open = this.#deps.connections().filter(({ channel }) => !channel.isClosed)
    return open[this.#deps.random.integer(0, Math.max(0, open.length - 1))] ?? null
  }
}

function isSettled({ wanted, sent, isRepeated }: Offer): boolean {
  return isDeepStrictEqual(wanted, sent) && (wanted === null || !isRepeated)
}

/**
 * Whether only cost and precedence differ. These are updated without replacing the terminator, so
 * that existing circuits continue.
 */
function isSameButForHealth(
  sent: RequestedTunnelTerminator,
  wanted: RequestedTunnelTerminator,
): boolean {
  const { cost, precedence } = wanted
  return isDeepStrictEqual({ ...sent, cost, precedence }, wanted)
}

function failureOf({ contentType, body }: ChannelMessage): OfferRefused {
  const text = Buffer.from(body.subarray(0, 1024)).toString('utf8')
  return new OfferRefused(text === '' ? `answered by a message ${contentType}` : text, false)
}
