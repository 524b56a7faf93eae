/** Identity that an SDK logs in with by certificate. */
export interface EnrolledIdentity {
  /** `https://host:port` of the controller. */
  readonly origin: string
  readonly privateKeyPem: string
  /** Leaf first. */
  readonly certificatePem: string
  /** Anchors that the controllers are verified against. */
  readonly caPem: string
}

/**
 * The file that stock SDKs read. It names one address alone: with a list of them (`ztAPIs`), SDKs
 * log in by another protocol, which this cluster does not serve.
 */
export function identityFileText(identity: EnrolledIdentity): string {
  const { origin, privateKeyPem, certificatePem, caPem } = identity
  const file = {
    ztAPI: `${origin}/edge/client/v1`,
    id: { key: `pem:${privateKeyPem}`, cert: `pem:${certificatePem}`, ca: `pem:${caPem}` },
  }
  return `${JSON.stringify(file, null, 2)}\n`
}
