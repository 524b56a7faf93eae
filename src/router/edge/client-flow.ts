import type { Channel, Outgoing } from '../../channel/channel.ts'
import { routerProgramLimits } from '../limits.ts'

const { clientQueuedBytesMax, clientUnsentBytesMax } = routerProgramLimits

/**
 * How much of a client's channel is under way in each direction: data goes out while the client
 * reads it, and nothing is read of a client that sends more than its circuits take.
 */
export class ClientFlow {
  readonly #channel: Channel
  #queuedBytes = 0
  #pause: PromiseWithResolvers<void> | null = null

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /** Resolved when the next message of the client may be taken; null: now. */
  get paused(): Promise<void> | null {
    return this.#pause?.promise ?? null
  }

  /** Sends data. @returns false when it was not sent: `onceWritable` tells when to try again. */
  trySend(outgoing: Outgoing): boolean {
    return this.#channel.trySend(outgoing, clientUnsentBytesMax)
  }

  /** Calls it once, when there is room again; all that wait have turns. */
  onceWritable(callback: () => void): void {
    this.#channel.onceWritable(callback)
  }

  /** @param bytes that a circuit does not take yet; less than zero when it has. */
  addQueued(bytes: number): void {
    this.#queuedBytes += bytes
    if (this.#queuedBytes > clientQueuedBytesMax) this.#pause ??= Promise.withResolvers()
    else if (this.#pause !== null && this.#queuedBytes <= clientQueuedBytesMax / 2) this.goOn()
  }

  /** Nothing is waited for any more. */
  goOn(): void {
    this.#pause?.resolve()
    this.#pause = null
  }
}
