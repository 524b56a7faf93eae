/** Renewal of the certificates of a router. */
export const certificateLimits = {
  /** Body of one request to extend certificates, and of its answer: bounded by the client. */
  extendTimeoutMs: 15_000,
  /** How often it is judged whether certificates are due; after a failure, sooner. */
  certificatesJudgedEveryMs: 10 * 60_000,
  extensionAgainMs: 60_000,
} as const
