/** Limits of the Prometheus metrics at `/metrics`. */
export const metricsLimits = {
  /** Maximum routers with a separate series in a metric. */
  measuredRoutersMax: 5000,
  /** Maximum services with a separate series in a metric. */
  measuredServicesMax: 5000,
} as const
