/** Limits of servers for health checks and metrics. */
export const monitoringLimits = {
  /** Open connections per server. */
  monitoringConnectionsMax: 256,
  /** Open connections per source; several probes may share an address. */
  monitoringConnectionsPerSourceMax: 64,
  /**
   * Pending handshakes per server; one more closes the oldest of its source, or of the busiest one.
   */
  monitoringHandshakesMax: 128,
  monitoringHandshakesPerSourceMax: 32,
} as const
