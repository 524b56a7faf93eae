/** Limits for warnings about clients that can use only edge routers without an edge listener. */
export const missingListenerLogLimits = {
  /** Warnings that one controller may log in a burst; more are not logged. */
  listenerWarningsBurst: 10,
  /**
   * Warnings of one controller per second after the burst `listenerWarningsBurst`; more are not
   * logged.
   */
  listenerWarningsPerSecond: 0.1,
  /** Minimum interval between two warnings of one controller about the same identity. */
  listenerWarningIntervalMs: 600_000,
  /** Maximum identities whose last warning is stored; above that, the oldest is dropped. */
  listenerWarningIdentitiesMax: 1024,
} as const
