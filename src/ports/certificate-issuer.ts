/** A certificate that the network has issued, as stored and returned. */
export interface IssuedCertificate {
  /** PEM, leaf first, then the intermediates, without the root. */
  readonly chainPem: string
  readonly leafPem: string
  /**
   * SHA-1 of the leaf in DER, in lower-case hex. It serves only to look up a certificate and proves
   * nothing.
   */
  readonly fingerprint: string
  /** SHA-256 of the certificate's SubjectPublicKeyInfo, in lower-case hex. */
  readonly publicKeyPrint: string
  /** Subject, formatted as in RFC 4514. */
  readonly subject: string
  /** Hosts in the certificate, each in one canonical spelling. */
  readonly hosts: readonly string[]
  /** UTC ms. */
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

export interface IdentityCertificateRequest {
  readonly identityId: string
  /** PEM of an untrusted PKCS #10 request. */
  readonly requestPem: string
}

export interface ExtensionCertificateRequest extends IdentityCertificateRequest {
  /**
   * PEM of the certificate in use, leaf first. The caller verifies that it belongs to the identity.
   */
  readonly currentPem: string
}

export interface SessionCertificateRequest extends IdentityCertificateRequest {
  readonly apiSessionId: string
  readonly certificateId: string
  /**
   * `log-in`: the certificate is valid as long as the certificates of identities. Absent: it is
   * valid for the shorter time that the options set for certificates of sessions.
   */
  readonly madeAt?: 'log-in'
}

export interface RouterCertificateRequest {
  readonly routerId: string
  /** The common name in this request must be the id of the router. */
  readonly clientRequestPem: string
  readonly serverRequestPem: string
  readonly naming: RouterHostRules
}

/** The hosts that the server certificate of a router may contain, each in any spelling. */
export interface RouterHostRules {
  /**
   * `enrollment`: a person waits for the response, so the request fails with the name of the
   * forbidden host. `extension`: a program renews the certificate, so the certificate omits the
   * forbidden host, and the router continues with the others.
   */
  readonly at: 'enrollment' | 'extension'
  /**
   * Hosts in `allowedNames` of the router's record, which are permitted even if another rule
   * forbids them. If there are any, only these and the loopback names are allowed.
   */
  readonly allowed: readonly string[]
  /**
   * Hosts of controllers. A router's certificate contains such a host only if `allowed` contains
   * it.
   */
  readonly reserved: readonly string[]
  /**
   * Hosts of other routers. A certificate for an enrollment omits them, unless `allowed` contains
   * them.
   */
  readonly withheld: readonly string[]
  /**
   * PEM of the current server certificate. A certificate for an extension contains a requested host
   * only if it is in `allowed`, or if no rule forbids it and it is in this certificate or a
   * loopback name. Null if there is none.
   */
  readonly currentPem: string | null
}

export interface RouterCertificatePair {
  readonly client: IssuedCertificate
  readonly server: IssuedCertificate
}

/**
 * Issues the certificates of identities, sessions and routers in a separate thread, so that no
 * other work waits. The thread serves callers round robin; `caller` identifies the caller of a
 * request. This interface stores nothing: a certificate is valid only after the log contains it.
 *
 * Each method throws a {Problem}: COULD_NOT_PROCESS_CSR with a sentence for the sender of the
 * request; SERVER_TOO_MANY_REQUESTS when too many requests wait or this request has waited too
 * long; TIMEOUT when the thread did not issue the certificate in time; PEER_UNREACHABLE when this
 * controller does not have the issuing authority; CERTIFICATE_REFUSED when the authority has
 * expired.
 */
export interface CertificateIssuer {
  identity(order: IdentityCertificateRequest, caller: string): Promise<IssuedCertificate>
  extend(order: ExtensionCertificateRequest, caller: string): Promise<IssuedCertificate>
  session(order: SessionCertificateRequest, caller: string): Promise<IssuedCertificate>
  router(order: RouterCertificateRequest, caller: string): Promise<RouterCertificatePair>
  close(): Promise<void>
}

export interface RouterRequestPair {
  /** PEM of PKCS #10 requests. */
  readonly client: string
  readonly server: string
}

/**
 * Issues certificates of routers, with the names that their records and the cluster permit.
 *
 * Each method throws a {Problem}: those of `CertificateIssuer`, and NOT_FOUND for a router without
 * a record.
 */
export interface RouterCertifier {
  enroll(
    routerId: string,
    requests: RouterRequestPair,
    caller: string,
  ): Promise<RouterCertificatePair>
  /**
   * Issues certificates; the hosts of the server certificate are in the current one, in
   * `allowedNames` of the router's record, or loopback names.
   */
  extend(
    routerId: string,
    requests: RouterRequestPair,
    caller: string,
  ): Promise<RouterCertificatePair>
}
