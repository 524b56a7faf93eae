import type { IssuedCertificate } from '../../ports/certificate-issuer.ts'
import { networkAuthorities } from '../auth/trusted-authorities.ts'
import type { Call } from '../call.ts'
import { detailAnswer } from '../envelope.ts'
import type { Answer } from '../envelope.ts'
import type { ApiParts } from '../parts.ts'

/** All CA certificates of the network as one PEM text: what whoever enrolls trusts from then on. */
export function authoritiesPem(parts: Pick<ApiParts, 'authorities'>): string {
  return networkAuthorities(parts)
    .map(({ pem }) => pem.trim())
    .join('\n')
    .concat('\n')
}

/** As clients of the API family read it; an identity has no server certificate. */
export function certificatesAnswer(
  parts: Pick<ApiParts, 'authorities'>,
  { cert, serverCert = '' }: { readonly cert: string; readonly serverCert?: string },
): Answer {
  return detailAnswer({ ca: authoritiesPem(parts), cert, serverCert })
}

/** As a command carries it: of the network, so that no CA is named. */
export function networkCertificate({ chainPem, fingerprint, publicKeyPrint }: IssuedCertificate): {
  readonly pem: string
  readonly fingerprint: string
  readonly publicKeyPrint: string
  readonly caId: string
} {
  return { pem: chainPem, fingerprint, publicKeyPrint, caId: '' }
}

/**
 * The certificate in the answer is made for this call alone. Had the outcome of a request id been that of an earlier call,
 * the one that is kept would be another, and the one in the answer nobody's.
 */
export function answerThisCallAlone(call: Call): void {
  call.isRepeatable = false
}
