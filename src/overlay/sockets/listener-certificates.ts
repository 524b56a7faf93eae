import type { SecureContext, TlsOptions } from 'node:tls'
import type { Certificate } from '../../pki/certificate.ts'

/** A server certificate with its key. */
export interface ServerIdentity {
  readonly leaf: Certificate
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** A server certificate that is used only for the names that it contains. */
interface AlternateIdentity extends ServerIdentity {
  /** TLS context, which also verifies client certificates with the router's CA certificates. */
  readonly context: SecureContext
}

/** Server certificates of listeners. */
export interface ListenerCertificates {
  /** Main certificate of this router's listeners; null if none is configured. */
  readonly server: ServerIdentity | null
  /**
   * Alternate certificates in their order: the first one that contains the requested name is used.
   */
  readonly alternates: readonly AlternateIdentity[]
}

/**
 * Selects the server certificate by the server name (SNI) that the client requests. If no alternate
 * certificate matches, the main certificate is used.
 * @param identity returns the current certificates.
 */
export function createSniCallback(
  identity: () => ListenerCertificates,
): NonNullable<TlsOptions['SNICallback']> {
  return (name, done) => {
    const found = identity().alternates.find(
      ({ leaf }) => leaf.native.checkHost(name) !== undefined,
    )
    done(null, found?.context)
  }
}
