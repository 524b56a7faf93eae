/** Credentials with which an identity authenticates at controllers and edge routers. */
export interface IdentityCredential {
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
}

/** The certificate of an identity, and the file that holds it. */
export interface IdentityCertificate {
  /** Certificate and key for new connections. */
  readonly credential: IdentityCredential
  /** SHA-1 of the certificate, lowercase hex. */
  readonly fingerprint: string
  /** Time at which renewal of the certificate becomes due, UTC ms. */
  readonly renewAtMs: number
  readonly notAfterMs: number
  /**
   * A renewed certificate in the file that is not used for connections yet; null if there is none.
   */
  readonly renewed: { readonly certificatePem: string; readonly fingerprint: string } | null
  /**
   * Creates a certificate request for the key in the file.
   * @returns PKCS #10, PEM.
   */
  request(identityId: string): Promise<string>
  /**
   * Stores a renewed certificate in the file; the current certificate stays in use.
   * @param certificatePem leaf first.
   * @throws {Error} with a message of one clause.
   */
  store(certificatePem: string): void
  /**
   * Uses the renewed certificate for new connections, even if the file cannot be written.
   * @throws {Error} with a message of one clause; then `renewed` is unchanged.
   */
  adopt(): void
}
