/** Credentials with which an SDK logs in by certificate. */
export interface EnrolledIdentity {
  /** `https://host:port` of the controller. */
  readonly origin: string
  readonly privateKeyPem: string
  /** Leaf first. */
  readonly certificatePem: string
  /** Trust anchors to verify the controllers with. */
  readonly caPem: string
}

/**
 * The file that OpenZiti SDKs read. It names one address only: with a list of addresses (`ztAPIs`),
 * SDKs log in by another protocol, which this cluster does not serve.
 */
export function identityFileText(identity: EnrolledIdentity): string {
  const { origin, privateKeyPem, certificatePem, caPem } = identity
  const file = {
    ztAPI: `${origin}/edge/client/v1`,
    id: { key: `pem:${privateKeyPem}`, cert: `pem:${certificatePem}`, ca: `pem:${caPem}` },
  }
  return `${JSON.stringify(file, null, 2)}\n`
}
