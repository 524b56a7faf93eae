/** Limits for renewing the router's certificates. */
export const certificateLimits = {
  /**
   * Time limit for a request that renews certificates; the HTTP client limits the size of the
   * response.
   */
  extendTimeoutMs: 15_000,
  /**
   * Interval for checking whether certificates are due for renewal. The next check is earlier after
   * a failure, or if a certificate is due earlier.
   */
  certificatesJudgedEveryMs: 10 * 60_000,
  /** Maximum delay before the next attempt after a failed renewal of the certificates. */
  extensionAgainMs: 60_000,
} as const
