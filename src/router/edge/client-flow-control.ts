import type { Channel } from '../../channel/channel.ts'
import { edgeLimits } from './limits.ts'
import type { OutboundMessage } from '../../channel/frame.ts'

const { clientQueuedBytesMax, clientUnsentBytesMax } = edgeLimits

/**
 * Flow control for the channel of a client, in both directions: the router sends data only while
 * the client reads, and stops reading from a client that sends more data than its circuits accept.
 */
export class ClientFlowControl {
  readonly #channel: Channel
  #queuedBytes = 0
  #isPaused = false

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /**
   * Sends data if the client reads fast enough.
   * @returns false if nothing was sent; the caller should retry when `onceWritable` calls back.
   */
  trySend(outgoing: OutboundMessage): boolean {
    // @guard client-that-never-reads--out
    return this.#channel.trySend(outgoing, clientUnsentBytesMax)
  }

  /**
   * Calls the callback once when more data can be sent. Callbacks run in the order in which they
   * were added.
   */
  onceWritable(callback: () => void): void {
    this.#channel.onceWritable(callback)
  }

  /**
   * @param bytes bytes that were queued for a circuit; negative for bytes that the circuit has
   * accepted.
   */
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
