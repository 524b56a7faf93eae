/** Limits of the Prometheus metrics at `/metrics`. */
export const metricsLimits = {
  /** Maximum routers and services that have series. */
  measuredRoutersMax: 5000,
  measuredServicesMax: 5000,
} as const
