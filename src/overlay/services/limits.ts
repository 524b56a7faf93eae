import { interceptTargetLimits } from '../../lib/intercept/limits.ts'

/** Limits of the services that a tunnel hosts, intercepts, or offers on ports of its host. */
export const serviceLimits = {
  /**
   * Maximum services that a tunnel hosts, maximum services that it intercepts, and maximum ports on
   * which it offers services.
   */
  tunnelServicesMax: 10_000,
  /** Maximum terminators in one `host.v2` config; with more, the service is not hosted. */
  hostedTerminatorsMax: 64,
  /**
   * Maximum members of each list of addresses, port ranges, protocols or translations in one
   * config; with more, the service is not hosted or intercepted.
   */
  hostRulesMax: interceptTargetLimits.interceptRulesMax,
  /**
   * Maximum port checks, maximum HTTP checks, and maximum actions of one check in one config; with
   * more, the service is not hosted.
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
  /**
   * Characters of a response to an HTTP check after which the search for the expected text reads no
   * further.
   */
  hostProbeBodyCharactersMax: 64 * 1024,
  /** Interval at which the tunnel tries again to open ports that were in use. */
  entriesRetriedEveryMs: 30_000,
  /**
   * Maximum bytes of application data from a client of a hosted service; a dial with more is
   * refused.
   */
  appDataBytesMax: 4096,
} as const
