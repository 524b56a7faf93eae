import type { ChannelMessage } from '../../channel/frame.ts'
import { FairQueue } from '../../lib/bounds/fair-queue.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { forwardLimits } from './limits.ts'
import type { FrameDestination } from '../../overlay/circuits/circuit-endpoint.ts'

interface Delivery {
  readonly caller: string
  readonly to: FrameDestination
  readonly message: ChannelMessage
}

const { localDeliveriesMax, localDeliveryBytesMax } = forwardLimits
/** Number of frames that are delivered before the event loop serves links and sockets. */
const STRETCH_DELIVERIES = 256
/** Bytes that count for each frame in addition to its body. */
const DELIVERY_ROOM = 128

/**
 * Frames for circuit endpoints in this router, from endpoints in it or in its clients. They are
 * delivered in a later turn of the event loop, because an endpoint that receives a frame may send
 * the next one in the same call. The senders are served round-robin. Waiting bytes are limited for
 * each destination and in total, because an endpoint in a client may ignore the flow control
 * window.
 */
export class LocalDeliveryQueue {
  // @guard client-that-repeats-itself--frames
  readonly #waiting = new FairQueue<Delivery>(localDeliveriesMax)
  readonly #room = new FairShare(localDeliveryBytesMax)
  /** Waiting bytes by destination. */
  readonly #bytesFor = new Map<FrameDestination, number>()
  readonly #waiters = new Map<FrameDestination, Set<() => void>>()
  #isDue = false

  /**
   * @param caller the sender whose share of the deliveries the frame uses.
   * @param bytesMax maximum number of bytes that wait for `to`, including this frame; a single
   * frame may be larger.
   * @returns false if the frame was dropped because a limit is reached.
   */
  deliver(
    caller: string,
    to: FrameDestination,
    message: ChannelMessage,
    bytesMax: number,
  ): boolean {
    const bytes = roomOf(message)
    const waiting = this.#bytesFor.get(to) ?? 0
    // @guard client-that-repeats-itself--bytes, client-that-repeats-itself--end
    const hasRoom = (waiting === 0 || waiting + bytes <= bytesMax) && this.#room.hasRoomFor(caller)
    // @guard client-that-repeats-itself--turns
    if (!hasRoom || !this.#waiting.push(caller, { caller, to, message })) return false
    this.#room.take(caller, bytes)
    this.#bytesFor.set(to, waiting + bytes)
    this.#runSoon()
    return true
  }

  /**
   * Calls the callback once, in a later turn of the event loop, when no frame waits for the
   * destination. Use it after `deliver` has returned false.
   */
  onceWritable(to: FrameDestination, callback: () => void): void {
    const waiters = this.#waiters.get(to) ?? new Set()
    this.#waiters.set(to, waiters.add(callback))
    this.#runSoon()
  }

  #runSoon(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => this.#run())
  }

  #run(): void {
    this.#isDue = false
    let delivery = this.#waiting.shift()
    for (let count = 1; delivery !== undefined; count += 1) {
      this.#deliver(delivery)
      delivery = count < STRETCH_DELIVERIES ? this.#waiting.shift() : undefined
    }
    this.#callWaiters()
    if (this.#bytesFor.size > 0) this.#runSoon()
  }

  #deliver({ caller, to, message }: Delivery): void {
    const bytes = roomOf(message)
    this.#room.giveBack(caller, bytes)
    const left = (this.#bytesFor.get(to) ?? 0) - bytes
    if (left > 0) this.#bytesFor.set(to, left)
    else this.#bytesFor.delete(to)
    to.forward(message)
  }

  #callWaiters(): void {
    for (const [to, waiters] of Array.from(this.#waiters)) {
      if (this.#bytesFor.has(to)) continue
      this.#waiters.delete(to)
      for (const waiter of waiters) waiter()
    }
  }
}

function roomOf({ body }: ChannelMessage): number {
  return body.length + DELIVERY_ROOM
}
