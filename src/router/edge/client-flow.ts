import type { Channel } from '../../channel/channel.ts'
import { edgeLimits } from './limits.ts'
import type { Outgoing } from '../../channel/frame.ts'

const { clientQueuedBytesMax, clientUnsentBytesMax } = edgeLimits

/**
 * How much of a client's channel is under way in each direction: data goes out while the client
 * reads it, and nothing is read of a client that sends more than its circuits take.
 */
export class ClientFlow {
  readonly #channel: Channel
  #queuedBytes = 0
  #isPaused = false

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /** Sends data. @returns false when it was not sent: `onceWritable` tells when to try again. */
  trySend(outgoing: Outgoing): boolean {
    // @guard client-that-never-reads--out
    return this.#channel.trySend(outgoing, clientUnsentBytesMax)
  }

  /** Calls it once, when there is room again; all that wait have turns. */
  onceWritable(callback: () => void): void {
    this.#channel.onceWritable(callback)
  }

  /** @param bytes that a circuit does not take yet; less than zero when it has. */
  addQueued(bytes: number): void {
    this.#queuedBytes += bytes
    // @guard client-that-never-reads--in
    if (this.#queuedBytes > clientQueuedBytesMax) this.#pause()
    else if (this.#queuedBytes <= clientQueuedBytesMax / 2) this.#goOn()
  }

  #pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#channel.pauseReading()
  }

  #goOn(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#channel.resumeReading()
  }
}
