import { interceptTargetLimits } from '../../lib/intercept/limits.ts'

/** Limits of services that a tunnel hosts or offers. */
export const serviceLimits = {
  /** Maximum services that a tunnel hosts or offers, and terminators of each. */
  tunnelServicesMax: 10_000,
  hostedTerminatorsMax: 64,
  /**
   * Maximum addresses, ports and translations of one config, and its health checks and their
   * actions.
   */
  hostRulesMax: interceptTargetLimits.interceptRulesMax,
  hostProbesMax: 64,
  hostConnectMsMax: 300_000,
  /** Bounds for interval and timeout of a health check; other values are clamped. */
  hostProbeMsMin: 100,
  hostProbeMsMax: 86_400_000,
  /** Maximum bytes of a health check response that are searched. */
  hostProbeBodyBytesMax: 64 * 1024,
  /** Interval of retries for ports that could not be opened. */
  entriesRetriedEveryMs: 30_000,
  /** Maximum bytes of application data from a client of a hosted service. */
  appDataBytesMax: 4096,
} as const
