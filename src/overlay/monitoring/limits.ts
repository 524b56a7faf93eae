/** Limits of servers for health checks and metrics. */
export const monitoringLimits = {
  /** Maximum open connections per server. */
  monitoringConnectionsMax: 256,
  /** Maximum open connections per source; high, because several probes may share an address. */
  monitoringConnectionsPerSourceMax: 64,
  /**
   * Maximum pending handshakes per server; one more closes the oldest of its source, or of the
   * source with the most.
   */
  monitoringHandshakesMax: 128,
  /**
   * Maximum pending handshakes of one source per server; one more closes the oldest of that
   * source.
   */
  monitoringHandshakesPerSourceMax: 32,
} as const
