import type { Clock } from '../lib/clock.ts'
import { readUint64, encodeUint64 } from './headers.ts'
import type { ChannelMessage } from './frame.ts'
import { retainableBytes } from './header-view.ts'
import { channelHeaderKey } from './numbers.ts'

interface HeartbeatTiming {
  /**
   * Interval of heartbeat stamps. A stamp is sent with the next message, or in a separate message
   * if none is sent in time.
   */
  readonly heartbeatEveryMs: number
  /** If the peer returns no heartbeat stamp for this long, it counts as disconnected. */
  readonly silentMsMax: number
  /** Replaces `silentMsMax` until the peer has returned its first heartbeat stamp. */
  readonly firstSilentMsMax: number
}

const STAMP_BYTES = 8
const NANOSECONDS = 1_000_000n

/**
 * Heartbeat stamps, which both peers send and return together with other messages. A stamp is a
 * time of the sender's clock, and the peer returns it unchanged, so the clocks of the two peers are
 * never compared.
 */
export class HeartbeatExchange {
  readonly #timing: HeartbeatTiming
  readonly #clock: Clock
  #startedMs: number
  #stampedMs: number
  #answeredMs: number | null = null
  #roundTripMs: number | null = null
  /** Time at which reading was paused; null if reading is not paused. */
  #pausedMs: number | null = null
  /**
   * False if the channel paused reading while the last stamp was pending: the round trip of that
   * stamp would include the pause and is not measured.
   */
  #isTimed = true
  /** A heartbeat stamp of the peer that must be returned to the peer. */
  #owed: Uint8Array | null = null

  constructor(timing: HeartbeatTiming, clock: Clock) {
    this.#timing = timing
    this.#clock = clock
    this.#startedMs = clock.monotonicMs()
    this.#stampedMs = this.#startedMs
  }

  /** Whether a heartbeat stamp of the peer waits to be returned. */
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

  /**
   * Time since the peer last returned a heartbeat stamp, or since the start if it has returned
   * none, ms.
   */
  get silentForMs(): number {
    const untilMs = this.#pausedMs ?? this.#clock.monotonicMs()
    return untilMs - (this.#answeredMs ?? this.#startedMs)
  }

  /** Called when reading is paused: the peer's silence does not count until reading resumes. */
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

  /** The last measured round trip time of a heartbeat stamp; null before the first. */
  get roundTripMs(): number | null {
    return this.#roundTripMs
  }

  /** Heartbeat stamps to send with the next outgoing message; null if none is due. */
  takeStamps(): ReadonlyMap<number, Uint8Array> | null {
    const isDue = this.isStampDue
    if (!isDue && this.#owed === null) return null
    const stamps = new Map<number, Uint8Array>()
    if (isDue) {
      this.#stampedMs = this.#clock.monotonicMs()
      this.#isTimed = this.#pausedMs === null
      const nowNs = BigInt(Math.round(this.#clock.nowMs())) * NANOSECONDS
      stamps.set(channelHeaderKey.heartbeat, encodeUint64(nowNs))
    }
    if (this.#owed !== null) stamps.set(channelHeaderKey.heartbeatResponse, this.#owed)
    this.#owed = null
    return stamps
  }

  onMessage({ headers }: ChannelMessage): void {
    const stamp = headers.get(channelHeaderKey.heartbeat)
    if (stamp?.length === STAMP_BYTES) this.#owed = retainableBytes(stamp)
    if (readUint64(headers, channelHeaderKey.heartbeatResponse) !== null) {
      this.#answeredMs = this.#clock.monotonicMs()
      if (this.#isTimed) this.#roundTripMs = this.#answeredMs - this.#stampedMs
    }
  }
}
