/** Limits for renewing the router's certificates. */
export const certificateLimits = {
  /**
   * Timeout for a request that extends certificates; the HTTP client limits the size of the
   * response.
   */
  extendTimeoutMs: 15_000,
  /**
   * Interval for checking whether certificates are due for extension; the next check is earlier
   * after a failure, or if a certificate is due before.
   */
  certificatesJudgedEveryMs: 10 * 60_000,
  /** Maximum delay before the next check after a failed extension of the certificates. */
  extensionAgainMs: 60_000,
} as const
