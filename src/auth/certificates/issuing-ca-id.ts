import { X509Certificate } from 'node:crypto'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Ca } from '../../entities/kinds/ca.ts'
import type { StateView } from '../../ports/state-view.ts'

/**
 * Id of the registered third-party CA that issued a certificate of an identity; null if the
 * network's own CA issued it, if no registered CA did, or if the certificate is missing or
 * unreadable.
 */
export function issuingCaId(
  state: Pick<StateView, 'count' | 'list'>,
  { certPem, isIssuedByNetwork }: Pick<Authenticator, 'certPem' | 'isIssuedByNetwork'>,
): string | null {
  if (isIssuedByNetwork || certPem === null || state.count('ca') === 0) return null
  const leaf = read(certPem)
  if (leaf === null) return null
  const { records } = state.list('ca', { limit: -1 })
  return records.find((ca) => hasSigned(ca, leaf))?.id ?? null
}

function hasSigned({ certPem }: Ca, leaf: X509Certificate): boolean {
  const certificate = read(certPem)
  return certificate !== null && leaf.checkIssued(certificate) && leaf.verify(certificate.publicKey)
}

function read(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem)
  } catch {
    return null
  }
}
