import type { SecureContext, TlsOptions } from 'node:tls'
import type { Certificate } from '../../pki/certificate.ts'

export interface ServerIdentity {
  readonly leaf: Certificate
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** Certificate of a server beside the first one, for the names that it has. */
export interface AlternateIdentity extends ServerIdentity {
  /** Client certificates are verified by the CA certificates of the router here as well. */
  readonly context: SecureContext
}

/** Certificates that listeners show. */
export interface ListenerCertificates {
  /** For what this router listens on; null when the configuration names none. */
  readonly server: ServerIdentity | null
  /** Alternates in their order: the first one that has the name asked for is shown. */
  readonly alternates: readonly AlternateIdentity[]
}

/**
 * Chooses the certificate of a server by the name that a client asks for; one without a name, or
 * with a name that no alternate has, is shown the first certificate.
 * @param identity in force.
 */
export function certificateByName(
  identity: () => ListenerCertificates,
): NonNullable<TlsOptions['SNICallback']> {
  return (name, done) => {
    const found = identity().alternates.find(
      ({ leaf }) => leaf.native.checkHost(name) !== undefined,
    )
    done(null, found?.context)
  }
}
