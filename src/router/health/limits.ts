/** HTTPS servers for health checks. */
export const healthCheckLimits = {
  /** Open connections of one HTTPS server for health checks. */
  healthConnectionsMax: 256,
  /** The same from one source; several probes may share an address. */
  healthConnectionsPerSourceMax: 64,
  /** Handshakes under way at one of them; one more ends the oldest of its source, or of most. */
  healthHandshakesMax: 128,
  healthHandshakesPerSourceMax: 32,
} as const
