import type { ChannelMessage } from '../../channel/frame.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Random } from '../../lib/random.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { controllerLimits } from './limits.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { ControlConnection } from './control-connection.ts'
import {
  AlreadyConnectedError,
  ControllerRefusedError,
  type DialedController,
} from './dial-controller.ts'

const { dialWaitMs, dialWaitMsMax, dialEveryMsMin } = controllerLimits
const DOUBLINGS_MAX = 16

export type DialController = (
  address: string,
  handlers: {
    readonly onMessage: (message: ChannelMessage) => null
    readonly onClose: (reason: string) => void
    readonly signal: AbortSignal
  },
) => Promise<DialedController>

interface ControllerDialerDeps {
  readonly dial: DialController
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  /** @returns why the connection must be closed; null if it may stay open. */
  readonly onConnected: (dialer: ControllerDialer, connection: DialedController) => Error | null
  readonly onMessage: (connection: ControlConnection, message: ChannelMessage) => void
  readonly onClosed: (connection: ControlConnection, reason: string) => void
  /** Returns whether the dialer should continue to dial. */
  readonly isWanted: (dialer: ControllerDialer) => boolean
}

export interface DialTarget {
  readonly id: string | null
  readonly addresses: readonly string[]
  /** Maximum wait between two attempts. */
  readonly waitMsMax?: number
}

/**
 * Dials one controller at one address after the other until it is connected. The waits between
 * attempts grow, and half of each wait is random.
 */
export class ControllerDialer {
  readonly #deps: ControllerDialerDeps
  /** Controller ID; null until the controller at the address has identified itself. */
  id: string | null
  addresses: readonly string[]
  connection: ControlConnection | null = null
  /**
   * ID of the controller that responded last, if another connection to that controller was already
   * open or being opened; otherwise null.
   */
  connectedAlready: string | null = null
  /** Addresses at which a controller with another ID responded. */
  readonly #ofOthers = new Set<string>()
  readonly #waitMsMax: number
  #attempts = 0
  #failures = 0
  #dialedMs = -Infinity
  #timer: NodeJS.Timeout | null = null
  #abort: AbortController | null = null
  #isStopped = false
  /** The reason of the last logged failure by address; the same reason is not logged again. */
  readonly #logged = new Map<string, string>()

  constructor(deps: ControllerDialerDeps, { id, addresses, waitMsMax }: DialTarget) {
    this.#deps = deps
    this.id = id
    this.addresses = addresses
    this.#waitMsMax = waitMsMax ?? dialWaitMsMax
  }

  start(waitMs = 0): void {
    this.#schedule(waitMs)
  }

  /** Whether an address belongs to this controller, according to the responses so far. */
  dials(address: string): boolean {
    return this.addresses.includes(address) && !this.#ofOthers.has(address)
  }

  /**
   * Restarts with a short wait, because another controller could just be reached: both connections
   * were probably lost for the same reason.
   */
  wake(): void {
    if (this.#timer === null || this.#failures === 0) return
    this.#failures = 0
    this.#schedule(this.#waitMs())
  }

  stop(reason: string): void {
    this.#isStopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#abort?.abort()
    this.connection?.channel.close(reason)
  }

  #schedule(waitMs: number): void {
    if (this.#isStopped) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#attempt()
    }, waitMs)
  }

  /**
   * The wait before the next attempt. Half of it is random, so that routers that lost the same
   * controller do not all dial it at the same time.
   */
  #waitMs(): number {
    const { clock, random } = this.#deps
    const grown = dialWaitMs * 2 ** Math.min(this.#failures, DOUBLINGS_MAX)
    const wait = Math.min(grown, this.#waitMsMax) * (0.5 + random.next() / 2)
    const sinceMs = clock.monotonicMs() - this.#dialedMs
    return Math.max(
      wait,
      this.#attempts % this.addresses.length === 0 ? dialEveryMsMin - sinceMs : 0,
    )
  }

  async #attempt(): Promise<void> {
    const { clock, dial, isWanted } = this.#deps
    if (this.#isStopped || this.#abort !== null || this.connection !== null) return
    if (!isWanted(this)) {
      this.#schedule(dialWaitMsMax)
      return
    }
    const address = this.addresses[this.#attempts % this.addresses.length] ?? ''
    this.#attempts += 1
    this.#dialedMs = clock.monotonicMs()
    const abort = new AbortController()
    this.#abort = abort
    let connection: ControlConnection | null = null
    try {
      const dialed = await dial(address, {
        signal: abort.signal,
        onMessage: (message) => {
          if (connection !== null) this.#deps.onMessage(connection, message)
          return null
        },
        onClose: (reason) => {
          if (connection !== null) this.#onClosed(connection, reason)
        },
      })
      this.#abort = null
      connection = dialed
      this.#onDialed(dialed)
    } catch (error) {
      this.#abort = null
      this.#onFailed(address, error)
    }
  }

  #onDialed(dialed: DialedController): void {
    if (this.#isStopped || dialed.channel.isClosed) {
      dialed.channel.close('not needed any more')
      if (!this.#isStopped) this.#schedule(this.#waitMs())
      return
    }
    if (this.id !== null && this.id !== dialed.id) {
      dialed.channel.close('another controller answers here')
      this.#ofOthers.add(dialed.address)
      this.#onFailed(dialed.address, new Error(`controller ${dialed.id} answers there`))
      return
    }
    this.connection = dialed
    const fault = this.#deps.onConnected(this, dialed)
    if (fault === null) {
      this.#logged.clear()
      this.#failures = 0
      this.connectedAlready = null
      this.#ofOthers.delete(dialed.address)
      return
    }
    this.connection = null
    dialed.channel.close(fault.message)
    this.#onFailed(dialed.address, fault)
  }

  #onFailed(address: string, error: unknown): void {
    if (this.#isStopped) return
    if (error instanceof AlreadyConnectedError) {
      this.connectedAlready = error.controllerId
      if (this.id !== null && this.id !== error.controllerId) this.#ofOthers.add(address)
      this.#schedule(this.#waitMsMax)
      return
    }
    this.#failures += 1
    const reason = errorMessage(error)
    if (this.#logged.get(address) !== reason) {
      for (const known of this.#logged.keys()) {
        if (!this.addresses.includes(known)) this.#logged.delete(known)
      }
      this.#logged.set(address, reason)
      const fields = { controllerId: this.id ?? undefined, address, reason }
      this.#deps.log.warn(
        fields,
        error instanceof ControllerRefusedError
          ? 'refused a controller; retrying with increasing delays'
          : 'cannot reach a controller; retrying with increasing delays. If it lasts, check that the controller runs, its address in the endpoints file, and firewalls',
      )
    }
    this.#schedule(this.#waitMs())
  }

  #onClosed(connection: ControlConnection, reason: string): void {
    if (this.connection !== connection) return
    this.connection = null
    this.#deps.onClosed(connection, reason)
    if (this.#isStopped) return
    this.#failures += 1
    this.#schedule(this.#waitMs())
  }
}
