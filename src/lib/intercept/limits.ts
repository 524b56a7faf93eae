/** Limits of one service that tunnels intercept. Controllers warn about configs beyond them. */
export const interceptTargetLimits = {
  /** Shortest prefix of a network that a service may intercept. */
  interceptPrefixBitsMin: 8,
  /**
   * Mode tproxy: maximum listening ports for one service, and maximum addresses of a network that
   * each get separate ports.
   */
  interceptListenersPerServiceMax: 1024,
  interceptNetworkAddressesMax: 256,
  /** Maximum addresses of a network whose ports are redirected, beyond the listening ports. */
  redirectedNetworkAddressesMax: 16,
  /** Maximum addresses of one config, and clauses about it in one answer. */
  interceptRulesMax: 4096,
  interceptFaultsShownMax: 16,
} as const
