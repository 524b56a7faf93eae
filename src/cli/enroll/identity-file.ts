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

const CLIENT_API = '/edge/client/v1'

/**
 * The file that OpenZiti SDKs read. Older SDKs read only `ztAPI`; newer ones try each address of
 * `ztAPIs` when they start, so that clients can start while one controller is lost.
 * @param origins of all controllers, beginning with that of the identity.
 */
export function identityFileText(identity: EnrolledIdentity, origins: readonly string[]): string {
  const { origin, privateKeyPem, certificatePem, caPem } = identity
  const file = {
    ztAPI: origin + CLIENT_API,
    ...(origins.length > 1 ? { ztAPIs: origins.map((each) => each + CLIENT_API) } : {}),
    id: { key: `pem:${privateKeyPem}`, cert: `pem:${certificatePem}`, ca: `pem:${caPem}` },
  }
  return `${JSON.stringify(file, null, 2)}\n`
}
