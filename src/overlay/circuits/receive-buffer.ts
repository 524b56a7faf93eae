import { circuitLimits } from './limits.ts'
import { keptBody, type Payload } from '../../channel/messages/payload.ts'

/**
 * Payloads of the other end that wait for those before them, or for the application. Payloads that
 * come in order pass through `#head`; the map is for all others.
 */
export class ReceiveBuffer {
  readonly #bytesMax: number
  /** Sequence that is delivered next. */
  #next = 0
  #head: Payload | null = null
  #later: Map<number, Payload> | null = null
  /** Highest sequence that was taken. */
  #highest = -1
  #bytes = 0

  /** @param bytesMax beyond them, only gaps are filled. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether it would wait for others before it. */
  isAhead({ sequence }: Pick<Payload, 'sequence'>): boolean {
    return sequence > this.#next
  }

  /** The payload that `shift` would give. */
  get hasNext(): boolean {
    return this.#head !== null
  }

  get isEmpty(): boolean {
    return this.#head === null && (this.#later === null || this.#later.size === 0)
  }

  /**
   * A payload that was delivered, or that is here, counts as taken: its sender waits for the
   * acknowledgement.
   * @param isAtOnce it is taken out again at once when it is next.
   * @returns false: dropped, and to be sent again later.
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

  /** A gap may always be filled within twice the bytes: an honest end has no more in flight. */
  #hasRoom(sequence: number, bytes: number): boolean {
    // @guard payloads-that-lie--ahead
    if (sequence - this.#next >= circuitLimits.xgressAheadMax) return false
    // @guard payloads-that-lie--unread
    if (sequence > this.#highest) return this.#bytes <= this.#bytesMax
    // @guard payloads-that-lie--gaps
    return this.#bytes + bytes <= 2 * this.#bytesMax
  }

  /** Takes out the next payload; null: it has not come. */
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

  /** Gives back memory that only traffic needs. */
  rest(): void {
    if (this.#later?.size === 0) this.#later = null
  }
}

function kept(payload: Payload): Payload {
  const { traceId } = payload
  return {
    ...payload,
    body: keptBody(payload.body),
    traceId: traceId === null ? null : keptBody(traceId),
  }
}
