/**
 * Limits for one service that tunnels intercept. Controllers warn about configs that exceed them.
 */
export const interceptTargetLimits = {
  /** Shortest prefix length of a network that a service may intercept. */
  interceptPrefixBitsMin: 8,
  /** Mode tproxy: maximum listening ports for one service. */
  interceptListenersPerServiceMax: 1024,
  /** Maximum addresses of a network whose addresses each get separate listening ports. */
  interceptNetworkAddressesMax: 256,
  /**
   * When listening ports are exhausted: maximum addresses of a network whose ports are redirected.
   */
  redirectedNetworkAddressesMax: 16,
  /** Maximum addresses of one config that are checked. */
  interceptRulesMax: 4096,
  /**
   * Maximum clauses about the faults of one config in a response; further faults are only
   * counted.
   */
  interceptFaultsShownMax: 16,
} as const
