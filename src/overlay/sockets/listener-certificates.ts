import type { SecureContext, TlsOptions } from 'node:tls'
import type { Certificate } from '../../pki/certificate.ts'

/** A server certificate with its key. */
export interface ServerIdentity {
  readonly leaf: Certificate
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** An alternate server certificate, used for the names that it contains. */
interface AlternateIdentity extends ServerIdentity {
  /** TLS context that also verifies client certificates with the CA certificates of the router. */
  readonly context: SecureContext
}

/** Server certificates of listeners. */
export interface ListenerCertificates {
  /** Certificate of this router's listeners; null when none is configured. */
  readonly server: ServerIdentity | null
  /** Alternates in order: the first one that contains the requested name is used. */
  readonly alternates: readonly AlternateIdentity[]
}

/**
 * Selects the server certificate by the server name (SNI) of the client. Without a matching
 * alternate, the first certificate is used.
 * @param identity certificates in force.
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
