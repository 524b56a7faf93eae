import { interceptTargetLimits } from '../../lib/intercept/limits.ts'

/** Limits of services that a tunnel hosts or offers. */
export const serviceLimits = {
  /** Maximum services that a tunnel hosts or offers. */
  tunnelServicesMax: 10_000,
  /** Maximum terminators in one `host.v2` config; with more, the service is not hosted. */
  hostedTerminatorsMax: 64,
  /**
   * Maximum addresses, maximum port ranges and maximum translations of one config; with more, the
   * service is not hosted.
   */
  hostRulesMax: interceptTargetLimits.interceptRulesMax,
  /**
   * Maximum port checks of one config, maximum HTTP checks, and maximum actions of one check;
   * with more, the service is not hosted.
   */
  hostProbesMax: 64,
  /** Maximum connect timeout of a config; a longer timeout is reduced to this value. */
  hostConnectMsMax: 300_000,
  /**
   * Minimum interval and minimum timeout of a health check; shorter ones are raised to this value.
   */
  hostProbeMsMin: 100,
  /**
   * Maximum interval and maximum timeout of a health check; longer ones are reduced to this
   * value.
   */
  hostProbeMsMax: 86_400_000,
  /** Maximum bytes of a health check response that are searched. */
  hostProbeBodyBytesMax: 64 * 1024,
  /** Interval of retries for ports that could not be opened. */
  entriesRetriedEveryMs: 30_000,
  /** Maximum bytes of application data from a client of a hosted service. */
  appDataBytesMax: 4096,
} as const
