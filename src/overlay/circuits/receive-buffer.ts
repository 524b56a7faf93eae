import { circuitLimits } from './limits.ts'
import { retainableBody, type Payload } from '../../channel/messages/payload.ts'

/**
 * Received payloads that wait for earlier ones or for the application. `#head` is the next payload
 * in the order; all later payloads are in the map.
 */
export class ReceiveBuffer {
  readonly #bytesMax: number
  /** Sequence number of the payload to deliver next. */
  #next = 0
  #head: Payload | null = null
  #later: Map<number, Payload> | null = null
  /** Highest sequence number that was accepted. */
  #highest = -1
  #bytes = 0

  /**
   * @param bytesMax above this number of bytes, only the next payload and payloads that fill gaps
   * are accepted.
   */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether payloads with smaller sequence numbers are not delivered yet. */
  isAhead({ sequence }: Pick<Payload, 'sequence'>): boolean {
    return sequence > this.#next
  }

  /** Whether `shift` would return a payload. */
  get hasNext(): boolean {
    return this.#head !== null
  }

  get isEmpty(): boolean {
    return this.#head === null && (this.#later === null || this.#later.size === 0)
  }

  /**
   * Accepts a payload. A payload that was already delivered or buffered counts as accepted, so that
   * its sender gets another acknowledgment.
   * @param isAtOnce whether the caller removes the payload immediately if it is the next one.
   * @returns false if the payload was dropped; the sender retransmits it.
   */
  take(payload: Payload, isAtOnce: boolean): boolean {
    const { sequence, body } = payload
    // @guard 45-payload-that-came-before-is-delivered-again
    const isNext = sequence === this.#next
    if (sequence < this.#next || (isNext && this.#head !== null)) return true
    if (this.#later?.has(sequence) === true) return true
    // @guard 46-payload-without-room-is-acknowledged
    if (!isNext && !this.#hasRoom(sequence, body.length)) return false
    this.#bytes += body.length
    this.#highest = Math.max(this.#highest, sequence)
    if (isNext) {
      this.#head = isAtOnce ? payload : kept(payload)
    } else {
      this.#later ??= new Map()
      this.#later.set(sequence, kept(payload))
    }
    return true
  }

  /**
   * Whether a payload fits. Payloads that fill gaps may use up to twice `bytesMax`, because a
   * correct sender has no more in flight.
   */
  #hasRoom(sequence: number, bytes: number): boolean {
    // @guard payloads-that-lie--ahead
    if (sequence - this.#next >= circuitLimits.xgressAheadMax) return false
    // @guard payloads-that-lie--unread
    if (sequence > this.#highest) return this.#bytes <= this.#bytesMax
    // @guard payloads-that-lie--gaps
    return this.#bytes + bytes <= 2 * this.#bytesMax
  }

  /** Removes the next payload; null if it has not arrived. */
  shift(): Payload | null {
    const payload = this.#head
    if (payload === null) return null
    this.#bytes -= payload.body.length
    this.#next += 1
    this.#head = null
    if (this.#later !== null && this.#later.size > 0) {
      this.#head = this.#later.get(this.#next) ?? null
      if (this.#head !== null) this.#later.delete(this.#next)
    }
    return payload
  }

  clear(): void {
    this.#head = null
    this.#later = null
    this.#bytes = 0
  }

  /** Releases memory that is not needed while the circuit is idle. */
  rest(): void {
    if (this.#later?.size === 0) this.#later = null
  }
}

function kept(payload: Payload): Payload {
  const { traceId } = payload
  return {
    ...payload,
    body: retainableBody(payload.body),
    traceId: traceId === null ? null : retainableBody(traceId),
  }
}
