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
   * Maximum addresses of a network whose ports are redirected, which happens when the listening
   * ports of a service are exhausted.
   */
  redirectedNetworkAddressesMax: 16,
  /**
   * Maximum members of each list of one config, such as its addresses; with more, the service is
   * not intercepted.
   */
  interceptRulesMax: 4096,
  /**
   * Maximum reasons that a response lists for one config that no tunnel can intercept; further
   * reasons are only counted.
   */
  interceptFaultsShownMax: 16,
} as const
