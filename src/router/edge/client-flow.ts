import type { Duplex } from 'node:stream'

import type { Channel, Outgoing } from '../../channel/channel.ts'
import { routerProgramLimits } from '../limits.ts'

const { clientQueuedBytesMax, clientUnsentBytesMax } = routerProgramLimits

/**
 * How much of a client's channel is under way in each direction: data goes out while the client
 * reads it, and nothing is read of a client that sends more than its circuits take.
 */
export class ClientFlow {
  readonly #channel: Channel
  readonly #socket: Duplex
  /** To be called when there is room again, in their order. */
  readonly #waiting = new Set<() => void>()
  #isWaiting = false
  #queuedBytes = 0
  #pause: PromiseWithResolvers<void> | null = null

  constructor(channel: Channel, socket: Duplex) {
    this.#channel = channel
    this.#socket = socket
  }

  /** Resolved when the next message of the client may be taken; null: now. */
  get paused(): Promise<void> | null {
    return this.#pause?.promise ?? null
  }

  /** Of data. @returns false when it was not sent: `onceWritable` tells when to try again. */
  trySend(outgoing: Outgoing): boolean {
    if (this.#channel.unsentBytes > clientUnsentBytesMax || this.#waiting.size > 0) return false
    return this.#channel.send(outgoing)
  }

  /** Each caller is called once, and sends one piece at most before it waits again. */
  onceWritable(callback: () => void): void {
    this.#waiting.add(callback)
    this.#wait()
  }

  /** Of a callback that is gone. */
  forget(callback: () => void): void {
    this.#waiting.delete(callback)
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

  #wait(): void {
    if (this.#isWaiting || this.#channel.isClosed) return
    this.#isWaiting = true
    const go = (): void => {
      this.#isWaiting = false
      this.#flush()
    }
    if (this.#socket.writableNeedDrain) this.#socket.once('drain', go)
    else setImmediate(go)
  }

  #flush(): void {
    for (const callback of Array.from(this.#waiting)) {
      if (this.#channel.isClosed) return
      if (this.#channel.unsentBytes > clientUnsentBytesMax) break
      this.#waiting.delete(callback)
      callback()
    }
    if (this.#waiting.size > 0) this.#wait()
  }
}
