/** Credentials with which an identity authenticates at controllers and edge routers. */
export interface IdentityCredential {
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
}

/** The certificate of an identity, and the file that holds it. */
export interface IdentityCertificate {
  /** Used for new connections. */
  readonly credential: IdentityCredential
  /** SHA-1 of the certificate, lowercase hex. */
  readonly fingerprint: string
  /** Time from which the certificate should be renewed, UTC ms. */
  readonly renewAtMs: number
  readonly notAfterMs: number
  /** A renewed certificate in the file that is not in use yet; null if there is none. */
  readonly renewed: { readonly certificatePem: string; readonly fingerprint: string } | null
  /**
   * Creates a certificate request for the key in the file.
   * @returns PKCS #10, PEM.
   */
  request(identityId: string): Promise<string>
  /**
   * Stores a renewed certificate in the file; the current certificate stays in use.
   * @param certificatePem leaf first.
   * @throws {Error} whose message is one clause.
   */
  store(certificatePem: string): void
  /**
   * Uses the renewed certificate from now on, also if the file cannot be written.
   * @throws {Error} whose message is one clause; `renewed` then stays.
   */
  adopt(): void
}
