/** Credentials with which an SDK logs in with a certificate. */
export interface EnrolledIdentity {
  /** `https://host:port` of the controller. */
  readonly origin: string
  readonly privateKeyPem: string
  /** Certificate chain as PEM, leaf certificate first. */
  readonly certificatePem: string
  /** CA certificates with which the controllers are verified. */
  readonly caPem: string
}

const CLIENT_API = '/edge/client/v1'

/**
 * The identity file that OpenZiti SDKs read. Older SDKs read only `ztAPI`; newer SDKs try each
 * address in `ztAPIs` at startup, so clients can start while one controller is down.
 * @param origins of all controllers, beginning with the identity's controller.
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
