import type { Channel } from '../../channel/channel.ts'
import { edgeLimits } from './limits.ts'
import type { OutboundMessage } from '../../channel/frame.ts'

const { clientQueuedBytesMax, clientUnsentBytesMax } = edgeLimits

/**
 * Flow control of a client's channel in both directions: the router sends data only while the
 * client reads, and stops reading from a client that sends more than its circuits accept.
 */
export class ClientFlowControl {
  readonly #channel: Channel
  #queuedBytes = 0
  #isPaused = false

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /**
   * Sends data.
   * @returns false if the data was not sent; `onceWritable` then calls back when the caller should
   * retry.
   */
  trySend(outgoing: OutboundMessage): boolean {
    // @guard client-that-never-reads--out
    return this.#channel.trySend(outgoing, clientUnsentBytesMax)
  }

  /** Calls the callback once when there is room again; callbacks take turns. */
  onceWritable(callback: () => void): void {
    this.#channel.onceWritable(callback)
  }

  /** @param bytes newly queued for a circuit; negative when the circuit has accepted them. */
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
