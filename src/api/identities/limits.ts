/** Limits of the log about clients whose edge routers have no edge listener. */
export const listenerWarningLimits = {
  /** Warnings of one controller: at once, sustained, and interval for the same identity. */
  listenerWarningsBurst: 10,
  listenerWarningsPerSecond: 0.1,
  listenerWarningIntervalMs: 600_000,
  /** Identities whose last warning is known; more forget the oldest. */
  listenerWarningIdentitiesMax: 1024,
} as const
