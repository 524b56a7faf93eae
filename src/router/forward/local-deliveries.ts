import type { ChannelMessage } from '../../channel/frame.ts'
import type { Destination } from './circuit-ends.ts'

interface Delivery {
  readonly to: Destination
  readonly message: ChannelMessage
}

/** Frames at a stretch; links and sockets have their turn between two stretches. */
const STRETCH_DELIVERIES = 256

/**
 * Frames between two ends in this router. They are delivered one after the other in a later turn,
 * because an end that gets one may send the next from within: the windows of the ends bound how
 * many wait.
 */
export class LocalDeliveries {
  #waiting: Delivery[] = []
  #isDue = false

  deliver(to: Destination, message: ChannelMessage): void {
    this.#waiting.push({ to, message })
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => this.#run())
  }

  #run(): void {
    const stretch = this.#waiting.slice(0, STRETCH_DELIVERIES)
    this.#waiting = this.#waiting.slice(STRETCH_DELIVERIES)
    for (const { to, message } of stretch) to.forward(message)
    this.#isDue = this.#waiting.length > 0
    if (this.#isDue) setImmediate(() => this.#run())
  }
}
