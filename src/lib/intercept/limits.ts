/**
 * Limits for one service that tunnels intercept. Controllers warn about configs that exceed them.
 */
export const interceptTargetLimits = {
  /** Shortest prefix length of a network that a service may intercept. */
  interceptPrefixBitsMin: 8,
  /**
   * Mode tproxy: maximum listening ports for one service, which is also the maximum number of
   * addresses in a network whose addresses each get separate ports.
   */
  interceptListenersPerServiceMax: 1024,
  interceptNetworkAddressesMax: 256,
  /**
   * When listening ports are exhausted: maximum addresses of a network whose ports are redirected.
   */
  redirectedNetworkAddressesMax: 16,
  /**
   * Maximum addresses of one config that are checked, and clauses about one config in a response.
   */
  interceptRulesMax: 4096,
  interceptFaultsShownMax: 16,
} as const
