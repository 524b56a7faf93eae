/** Credentials with which an SDK logs in by certificate. */
export interface EnrolledIdentity {
  /** `https://host:port` of the controller that enrolled it. */
  readonly origin: string
  /** The same of all controllers, that one first. */
  readonly origins: readonly string[]
  readonly privateKeyPem: string
  /** Leaf first. */
  readonly certificatePem: string
  /** Trust anchors to verify the controllers with. */
  readonly caPem: string
}

/** The file that OpenZiti SDKs read. Those that know no `ztAPIs` use `ztAPI` alone. */
export function identityFileText(identity: EnrolledIdentity): string {
  const { origin, origins, privateKeyPem, certificatePem, caPem } = identity
  const clientApi = (at: string): string => `${at}/edge/client/v1`
  const file = {
    ztAPI: clientApi(origin),
    ztAPIs: origins.map(clientApi),
    id: { key: `pem:${privateKeyPem}`, cert: `pem:${certificatePem}`, ca: `pem:${caPem}` },
  }
  return `${JSON.stringify(file, null, 2)}\n`
}
