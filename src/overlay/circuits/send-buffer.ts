import { circuitLimits } from './limits.ts'
import {
  type Acknowledgement,
  type PayloadContent,
  readSequenceAt,
} from '../../channel/messages/payload.ts'
import type { XgressOptions } from './xgress-options.ts'

/** A payload that waits to be sent, or was sent and waits for its acknowledgment. */
export interface OutboundPayload extends PayloadContent {
  /** Sequence number; -1 until the payload is first sent. */
  sequence: number
  flags: number
  readonly capabilities: number | null
  sentMs: number
}

/** Interval at which payloads in flight are checked for retransmission. */
const SEARCH_MS = 64
/**
 * Minimum retransmission interval while the buffer of the other endpoint is full. That endpoint
 * also reports when it has space again.
 */
const PROBE_MS = 1000
const RETX_SCALE_STEP_DOWN = 0.01
const RETX_SCALE_STEP_UP = 0.2
/**
 * Maximum scale of the retransmission timeout that duplicate acknowledgments can cause, because a
 * malicious peer can send any number of them.
 */
const RETX_SCALE_MAX = 10
const STAMP_MODULUS = 0x1_0000

/**
 * Payloads in flight of one circuit endpoint, and the send window. The window grows with
 * acknowledgments and shrinks with retransmissions.
 */
export class SendBuffer {
  readonly #options: XgressOptions
  /**
   * Payloads by sequence number, in the order in which they were added; null while empty, which
   * saves memory for idle circuits.
   */
  #sent: Map<number, OutboundPayload> | null = null
  #inFlightBytes = 0
  #windowBytes: number
  #peerBufferedBytes = 0
  #retxMs: number
  #retxScale: number
  #roundTripMs = 0
  /**
   * `#acknowledged` counts the payloads acknowledged since the window last grew.
   * `#acknowledgedBytes` sums the bytes acknowledged since the window last shrank.
   */
  #acknowledged = 0
  #acknowledgedBytes = 0
  #duplicates = 0
  #sentAgain = 0
  #searchedMs = 0
  /** No payload in flight was sent before this time. */
  #sentFromMs = Infinity

  constructor(options: XgressOptions) {
    this.#options = options
    this.#windowBytes = Math.min(options.txPortalStartSize, options.txPortalMaxSize)
    this.#retxMs = options.retxStartMs
    this.#retxScale = options.retxScale
  }

  get isEmpty(): boolean {
    return this.#sent === null || this.#sent.size === 0
  }

  get inFlightBytes(): number {
    return this.#inFlightBytes
  }

  get windowBytes(): number {
    return this.#windowBytes
  }

  /** Retransmission timeout, ms. */
  get retxMs(): number {
    return this.#retxMs
  }

  /**
   * Whether no further payload may be sent. One payload may always be in flight, because its
   * acknowledgment opens the window again. All payloads in flight must fit into the buffer of the
   * other endpoint, which would drop the excess without a report.
   */
  get isBlocked(): boolean {
    const sent = this.#sent
    if (sent === null || sent.size === 0) return false
    return (
      this.#inFlightBytes > this.#windowBytes ||
      this.#peerBufferedBytes + this.#inFlightBytes > this.#options.txPortalMaxSize ||
      sent.size >= circuitLimits.xgressInFlightMax
    )
  }

  add(payload: OutboundPayload, nowMs: number): void {
    payload.sentMs = nowMs
    this.#sent ??= new Map()
    this.#sent.set(payload.sequence, payload)
    this.#inFlightBytes += payload.body.length
    this.#sentFromMs = Math.min(this.#sentFromMs, nowMs)
  }

  has(payload: OutboundPayload): boolean {
    return this.#sent?.get(payload.sequence) === payload
  }

  /** Removes a payload from those in flight. */
  remove(payload: OutboundPayload): void {
    if (this.#sent?.delete(payload.sequence) === true) this.#inFlightBytes -= payload.body.length
  }

  /** Makes the next check retransmit the payload. */
  makeDue(payload: OutboundPayload): void {
    payload.sentMs = -Infinity
    this.#sentFromMs = -Infinity
  }

  acknowledge({ body, bufferedBytes, stamp }: Acknowledgement, nowMs: number): void {
    for (let at = 0; at < body.length; at += 4) this.#acknowledgeOne(readSequenceAt(body, at))
    this.#peerBufferedBytes = bufferedBytes
    if (stamp !== 0) this.#measure(stamp, nowMs)
  }

  #acknowledgeOne(sequence: number): void {
    const payload = this.#sent?.get(sequence)
    if (payload === undefined) {
      this.#onDuplicate()
      return
    }
    this.remove(payload)
    this.#acknowledgedBytes += payload.body.length
    this.#acknowledged += 1
    const { txPortalIncreaseThresh, txPortalIncreaseScale, txPortalMaxSize } = this.#options
    if (this.#acknowledged < txPortalIncreaseThresh) return
    this.#acknowledged = 0
    const grown = this.#windowBytes + Math.floor(this.#acknowledgedBytes * txPortalIncreaseScale)
    this.#windowBytes = Math.min(grown, txPortalMaxSize)
    this.#retxScale = Math.max(this.#retxScale - RETX_SCALE_STEP_DOWN, this.#options.retxScale)
  }

  #onDuplicate(): void {
    this.#duplicates += 1
    if (this.#duplicates < this.#options.txPortalDupAckThresh) return
    this.#duplicates = 0
    const max = Math.max(RETX_SCALE_MAX, this.#options.retxScale)
    this.#retxScale = Math.min(this.#retxScale + RETX_SCALE_STEP_UP, max)
  }

  #measure(stamp: number, nowMs: number): void {
    const { maxRttScale, retxAddMs, retxMaxMs } = this.#options
    const last = this.#roundTripMs
    let roundTripMs = (payloadTimestamp(nowMs) - stamp + STAMP_MODULUS) % STAMP_MODULUS
    if (last > 0) {
      // A scale of 1 is replaced, because the retransmission timeout could then never grow.
      const scale = maxRttScale === 1 ? 2 : maxRttScale
      if (scale > 0) roundTripMs = Math.min(roundTripMs, last * scale)
      roundTripMs = Math.floor((roundTripMs + last) / 2)
    }
    this.#roundTripMs = roundTripMs
    const retxMs = roundTripMs * this.#retxScale + retxAddMs
    // @guard payloads-that-lie--round-trip
    this.#retxMs = retxMaxMs > 0 ? Math.min(retxMs, retxMaxMs) : retxMs
  }

  /**
   * Payloads to retransmit, in the order in which they were first sent. The timeout is at least the
   * interval of checks.
   */
  due(nowMs: number): readonly OutboundPayload[] {
    if (this.#sent === null || nowMs - this.#searchedMs < SEARCH_MS) return none
    const isPeerFull = this.#peerBufferedBytes > this.#options.txPortalMaxSize
    const dueMs = nowMs - Math.max(this.#retxMs, isPeerFull ? PROBE_MS : SEARCH_MS)
    if (this.#sentFromMs > dueMs) return none
    this.#searchedMs = nowMs
    const due: OutboundPayload[] = []
    this.#sentFromMs = Infinity
    for (const payload of this.#sent.values()) {
      if (payload.sentMs <= dueMs) due.push(payload)
      this.#sentFromMs = Math.min(this.#sentFromMs, payload.sentMs)
    }
    return due
  }

  onSentAgain(payload: OutboundPayload, nowMs: number): void {
    payload.sentMs = nowMs
    this.#sentAgain += 1
    const { txPortalRetxThresh, txPortalRetxScale, txPortalMinSize, txPortalMaxSize } =
      this.#options
    if (this.#sentAgain < txPortalRetxThresh) return
    this.#sentAgain = 0
    this.#acknowledgedBytes = 0
    const scaled = Math.floor(this.#windowBytes * txPortalRetxScale)
    this.#windowBytes = Math.min(Math.max(scaled, txPortalMinSize), txPortalMaxSize)
  }

  clear(): void {
    this.#sent = null
    this.#inFlightBytes = 0
    this.#sentFromMs = Infinity
  }

  /** Releases memory that is not needed while the circuit is idle. */
  rest(): void {
    if (this.#sent?.size === 0) this.clear()
  }
}

const none: readonly OutboundPayload[] = []

/** Time stamp of a payload: the low 16 bits of a clock in ms; 0 means no time stamp. */
export function payloadTimestamp(nowMs: number): number {
  // 0 means no stamp, so 0 is replaced by the previous value. With the following value, an
  // acknowledgment within the same millisecond would seem older than its payload.
  return Math.floor(nowMs) % STAMP_MODULUS || STAMP_MODULUS - 1
}
