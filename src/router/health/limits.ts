/** Limits of HTTPS servers for health checks. */
export const healthCheckLimits = {
  /** Open connections per server. */
  healthConnectionsMax: 256,
  /** Open connections per source; several probes may share an address. */
  healthConnectionsPerSourceMax: 64,
  /**
   * Pending handshakes per server; one more closes the oldest of its source, or of the busiest one.
   */
  healthHandshakesMax: 128,
  healthHandshakesPerSourceMax: 32,
} as const
