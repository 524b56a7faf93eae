const SECOND_MS = 1000
const MINUTE_MS = 60_000

/** Limits for enrollments and for issuing certificates. */
export const enrollmentLimits = {
  /** Maximum time for issuing one certificate; after that: 503 TIMEOUT. */
  certificateMsMax: 2 * SECOND_MS,
  /**
   * Maximum wait before a queued certificate is issued; after that: 429 SERVER_TOO_MANY_REQUESTS.
   */
  certificateWaitMsMax: 5 * SECOND_MS,
  /**
   * Maximum certificates that wait to be issued, shared fairly by callers; above the total or the
   * caller's share: 429 SERVER_TOO_MANY_REQUESTS.
   */
  certificatesWaitingMax: 1024,
  /**
   * Lifetime of certificates for identities and routers; shorter if the issuing CA's certificate
   * expires earlier.
   */
  enrolledCertificateMs: 365 * 24 * 60 * MINUTE_MS,
  /** Lifetime of the certificate that an identity gets for one API session. */
  sessionCertificateMs: 12 * 60 * MINUTE_MS,
  /** Lifetime of an enrollment token that is created together with its identity. */
  identityEnrollmentMs: 180 * MINUTE_MS,
  /** Lifetime of the enrollment token of a router that is new or enrolls again. */
  routerEnrollmentMs: 180 * MINUTE_MS,
}

export type EnrollmentLimits = Readonly<typeof enrollmentLimits>
