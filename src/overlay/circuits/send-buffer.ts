import { circuitLimits } from './limits.ts'
import { type Acknowledgement, type Piece, sequenceAt } from '../../channel/messages/payload.ts'
import type { XgressOptions } from './xgress-options.ts'

/** A payload on its way: it is kept until the other end has acknowledged it. */
export interface OutboundPayload extends Piece {
  /** -1 until it is first sent. */
  sequence: number
  flags: number
  readonly capabilities: number | null
  sentMs: number
}

/** Between two searches for payloads to send again. */
const SEARCH_MS = 64
/** Between two attempts while the other end has no room: it says when it has. */
const PROBE_MS = 1000
const RETX_SCALE_STEP_DOWN = 0.01
const RETX_SCALE_STEP_UP = 0.2
/** Duplicates alone, which the other end may make up, slow nothing down further than this. */
const RETX_SCALE_MAX = 10
const STAMP_MODULUS = 0x1_0000

/**
 * Payloads in flight of one end, and how many more may follow. It grows by acknowledgements, and
 * shrinks by payloads that have to be sent again.
 */
export class SendBuffer {
  readonly #options: XgressOptions
  /** The order is that of sequences; null while it is empty, which it is in idle circuits. */
  #sent: Map<number, OutboundPayload> | null = null
  #inFlightBytes = 0
  #windowBytes: number
  #peerBufferedBytes = 0
  #retxMs: number
  #retxScale: number
  #roundTripMs = 0
  /** Since the window last grew; the bytes also since it last shrank. */
  #acknowledged = 0
  #acknowledgedBytes = 0
  #duplicates = 0
  #sentAgain = 0
  #searchedMs = 0
  /** No payload in flight was sent before. */
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

  /** Wait before a payload is sent again. */
  get retxMs(): number {
    return this.#retxMs
  }

  /**
   * A payload goes out in any case while none is in flight: its answer reopens the window. What is
   * in flight is to find room at the other end, which would drop it without an answer.
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

  /** Takes back the last one that was added. */
  remove(payload: OutboundPayload): void {
    if (this.#sent?.delete(payload.sequence) === true) this.#inFlightBytes -= payload.body.length
  }

  /** Takes effect now: the next search finds it. */
  makeDue(payload: OutboundPayload): void {
    payload.sentMs = -Infinity
    this.#sentFromMs = -Infinity
  }

  acknowledge({ body, bufferedBytes, stamp }: Acknowledgement, nowMs: number): void {
    for (let at = 0; at < body.length; at += 4) this.#acknowledgeOne(sequenceAt(body, at))
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
    let roundTripMs = (stampAt(nowMs) - stamp + STAMP_MODULUS) % STAMP_MODULUS
    if (last > 0) {
      // 1 would never let it grow.
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
   * Payloads that are due to be sent again, in the order of their sequences. A payload is waited
   * for at least as long as lies between two searches.
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

  /** Gives back memory that only traffic needs. */
  rest(): void {
    if (this.#sent?.size === 0) this.clear()
  }
}

const none: readonly OutboundPayload[] = []

/** The low 16 bits of a clock in ms; 0 is no stamp. */
export function stampAt(nowMs: number): number {
  // The one before, as an answer in the same ms would seem to be older than its payload.
  return Math.floor(nowMs) % STAMP_MODULUS || STAMP_MODULUS - 1
}
