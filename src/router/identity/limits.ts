/** Limits for renewing the router's certificates. */
export const certificateLimits = {
  /**
   * Timeout for a request that extends certificates; the HTTP client limits the size of the
   * response.
   */
  extendTimeoutMs: 15_000,
  /** Interval for checking whether certificates are due; shorter after a failure. */
  certificatesJudgedEveryMs: 10 * 60_000,
  extensionAgainMs: 60_000,
} as const
