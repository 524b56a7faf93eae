/** The two times a program needs. Wall time may jump; monotonic time only measures spans. */
export interface Clock {
  /** UTC, ms since the epoch. */
  nowMs(): number
  /** Never runs back; its zero is arbitrary. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}
