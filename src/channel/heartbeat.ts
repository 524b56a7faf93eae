import type { Clock } from '../lib/clock.ts'
import { readUint64, encodeUint64 } from './headers.ts'
import type { ChannelMessage } from './frame.ts'
import { bytesToStore } from './header-view.ts'
import { headerKey } from './numbers.ts'

interface HeartbeatTiming {
  /** Interval of stamps. A stamp goes out with another message, or alone when it is due. */
  readonly heartbeatEveryMs: number
  /** The peer is considered disconnected if a stamp is unanswered for this long ... */
  readonly silentMsMax: number
  /** ... and before the first answered stamp, for this long. */
  readonly firstSilentMsMax: number
}

const STAMP_BYTES = 8
const NANOSECONDS = 1_000_000n

/**
 * Heartbeat stamps, which are sent and returned together with other messages. A stamp contains the
 * sender's clock, and the peer returns it unchanged, so clocks of the two peers are never compared.
 */
export class Heartbeats {
  readonly #timing: HeartbeatTiming
  readonly #clock: Clock
  #startedMs: number
  #stampedMs: number
  #answeredMs: number | null = null
  #roundTripMs: number | null = null
  /** Time at which reading was paused; null if reading is not paused. */
  #pausedMs: number | null = null
  /**
   * False if received data waited to be read while the last stamp was pending; its round trip is
   * then not measured.
   */
  #isTimed = true
  /** A stamp of the peer that must be returned. */
  #owed: Uint8Array | null = null

  constructor(timing: HeartbeatTiming, clock: Clock) {
    this.#timing = timing
    this.#clock = clock
    this.#startedMs = clock.monotonicMs()
    this.#stampedMs = this.#startedMs
  }

  /** Whether a stamp of the peer waits to be returned. */
  get isOwed(): boolean {
    return this.#owed !== null
  }

  get isStampDue(): boolean {
    return this.#clock.monotonicMs() - this.#stampedMs >= this.#timing.heartbeatEveryMs
  }

  get isSilent(): boolean {
    const { silentMsMax, firstSilentMsMax } = this.#timing
    return this.silentForMs > (this.#answeredMs === null ? firstSilentMsMax : silentMsMax)
  }

  /** Time since the peer last returned a stamp, or since the start; ms. */
  get silentForMs(): number {
    const untilMs = this.#pausedMs ?? this.#clock.monotonicMs()
    return untilMs - (this.#answeredMs ?? this.#startedMs)
  }

  /** Reading is paused; from now on, the peer's silence does not count. */
  pause(): void {
    this.#pausedMs ??= this.#clock.monotonicMs()
    this.#isTimed = false
  }

  resume(): void {
    if (this.#pausedMs === null) return
    const lostMs = this.#clock.monotonicMs() - this.#pausedMs
    this.#pausedMs = null
    if (this.#answeredMs === null) this.#startedMs += lostMs
    else this.#answeredMs += lostMs
  }

  /** Round trip of the last returned stamp; null before the first. */
  get roundTripMs(): number | null {
    return this.#roundTripMs
  }

  /** Stamps for the next outgoing message; null if none is due. */
  takeStamps(): ReadonlyMap<number, Uint8Array> | null {
    const isDue = this.isStampDue
    if (!isDue && this.#owed === null) return null
    const stamps = new Map<number, Uint8Array>()
    if (isDue) {
      this.#stampedMs = this.#clock.monotonicMs()
      this.#isTimed = this.#pausedMs === null
      const nowNs = BigInt(Math.round(this.#clock.nowMs())) * NANOSECONDS
      stamps.set(headerKey.heartbeat, encodeUint64(nowNs))
    }
    if (this.#owed !== null) stamps.set(headerKey.heartbeatResponse, this.#owed)
    this.#owed = null
    return stamps
  }

  onMessage({ headers }: ChannelMessage): void {
    const stamp = headers.get(headerKey.heartbeat)
    if (stamp?.length === STAMP_BYTES) this.#owed = bytesToStore(stamp)
    if (readUint64(headers, headerKey.heartbeatResponse) !== null) {
      this.#answeredMs = this.#clock.monotonicMs()
      if (this.#isTimed) this.#roundTripMs = this.#answeredMs - this.#stampedMs
    }
  }
}
