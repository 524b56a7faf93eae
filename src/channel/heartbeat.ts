import type { Clock } from '../lib/clock.ts'
import { readUint64, uint64Value } from './headers.ts'
import type { ChannelMessage } from './frame.ts'
import { headerKey } from './numbers.ts'

export interface HeartbeatTiming {
  /** A stamp goes out with a message this often; beyond it one is sent for its sake. */
  readonly heartbeatEveryMs: number
  /** Without the answer to a stamp for this long the peer counts as gone ... */
  readonly silentMsMax: number
  /** ... and before its first one, for this long. */
  readonly firstSilentMsMax: number
}

const NANOSECONDS = 1_000_000n

/**
 * Stamps that go out and come back with other messages. A stamp is the clock of who sends it, and
 * the peer gives it back as it is, so no two clocks are compared.
 */
export class Heartbeats {
  readonly #timing: HeartbeatTiming
  readonly #clock: Clock
  readonly #startedMs: number
  #stampedMs: number
  #answeredMs: number | null = null
  #roundTripMs: number | null = null
  /** A stamp of the peer that is to go back. */
  #owed: Uint8Array | null = null

  constructor(timing: HeartbeatTiming, clock: Clock) {
    this.#timing = timing
    this.#clock = clock
    this.#startedMs = clock.monotonicMs()
    this.#stampedMs = this.#startedMs
  }

  /** Whether a stamp of the peer waits for a message that takes it back. */
  get isOwed(): boolean {
    return this.#owed !== null
  }

  get isStampDue(): boolean {
    return this.#clock.monotonicMs() - this.#stampedMs >= this.#timing.heartbeatEveryMs
  }

  get isSilent(): boolean {
    const { silentMsMax, firstSilentMsMax } = this.#timing
    const nowMs = this.#clock.monotonicMs()
    if (this.#answeredMs === null) return nowMs - this.#startedMs > firstSilentMsMax
    return nowMs - this.#answeredMs > silentMsMax
  }

  /** Since the last answer, or since the beginning; ms. */
  get silentForMs(): number {
    return this.#clock.monotonicMs() - (this.#answeredMs ?? this.#startedMs)
  }

  /** Round trip of the last stamp that came back; null before the first. */
  get roundTripMs(): number | null {
    return this.#roundTripMs
  }

  /** Adds the stamps of heartbeats to an outgoing message. */
  stamp(headers: Map<number, Uint8Array>): void {
    if (this.isStampDue) {
      this.#stampedMs = this.#clock.monotonicMs()
      const nowNs = BigInt(Math.round(this.#clock.nowMs())) * NANOSECONDS
      headers.set(headerKey.heartbeat, uint64Value(nowNs))
    }
    if (this.#owed !== null) {
      headers.set(headerKey.heartbeatResponse, this.#owed)
      this.#owed = null
    }
  }

  onMessage({ headers }: ChannelMessage): void {
    if (readUint64(headers, headerKey.heartbeat) !== null) {
      this.#owed = headers.get(headerKey.heartbeat) ?? null
    }
    if (readUint64(headers, headerKey.heartbeatResponse) !== null) {
      this.#answeredMs = this.#clock.monotonicMs()
      this.#roundTripMs = this.#answeredMs - this.#stampedMs
    }
  }
}
