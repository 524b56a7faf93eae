/** Limits for log lines about clients whose edge routers have no edge listener. */
export const listenerWarningLimits = {
  /** Warnings of one controller: burst, sustained rate, and interval for the same identity. */
  listenerWarningsBurst: 10,
  listenerWarningsPerSecond: 0.1,
  listenerWarningIntervalMs: 600_000,
  /** Maximum identities whose last warning is stored; above that, the oldest is dropped. */
  listenerWarningIdentitiesMax: 1024,
} as const
