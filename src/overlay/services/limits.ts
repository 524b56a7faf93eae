/** Services that a tunnel hosts or offers. */
export const serviceLimits = {
  /** Tunnel: services that are hosted or offered, and terminators of each. */
  tunnelServicesMax: 10_000,
  hostedTerminatorsMax: 64,
  /** Addresses, ports and translations of one config, and its health checks and their actions. */
  hostRulesMax: 4096,
  hostProbesMax: 64,
  hostConnectMsMax: 300_000,
  /** Interval and timeout of a health check; others count as the nearest of these. */
  hostProbeMsMin: 100,
  hostProbeMsMax: 86_400_000,
  /** The body of an answer to a health check that is looked at. */
  hostProbeBodyBytesMax: 64 * 1024,
  /** How often ports that could not be opened are tried again. */
  entriesRetriedEveryMs: 30_000,
  /** The answer of an HTTP proxy to CONNECT, without what follows it. */
  proxyHeadBytesMax: 16 * 1024,
  /** Application data of a client of a hosted service. */
  appDataBytesMax: 4096,
} as const
