/** Limits of servers for health checks and metrics. */
export const monitoringLimits = {
  /** Maximum open connections per server. */
  monitoringConnectionsMax: 256,
  /** Maximum open connections per source; high, because several probes may share an address. */
  monitoringConnectionsPerSourceMax: 64,
  /**
   * Maximum TLS handshakes of a server at the same time. A further handshake closes the oldest one
   * of the source with the most handshakes.
   */
  monitoringHandshakesMax: 128,
  /**
   * Maximum TLS handshakes of one source at a server; a further handshake closes the oldest one of
   * that source.
   */
  monitoringHandshakesPerSourceMax: 32,
} as const
