import { readKeyPurposes } from '../asn1/extensions.ts'
import { purposeOids } from '../asn1/object-identifiers.ts'
import { type Certificate, CertificateError } from '../certificate.ts'

type Purpose = 'serverAuth' | 'clientAuth'

/**
 * The purposes that the extended key usage of a certificate excludes (RFC 5280, 4.2.1.12). A
 * certificate without this extension permits every purpose.
 */
export function missingPurposes(
  { contents }: Pick<Certificate, 'contents'>,
  needed: readonly Purpose[],
): readonly Purpose[] {
  const permitted = readKeyPurposes(contents.extensions)
  return permitted === null ? [] : needed.filter((name) => !permitted.includes(purposeOids[name]))
}

/**
 * Whether a certificate permits a purpose, also by `anyExtendedKeyUsage`. Controllers and OpenZiti
 * accept that purpose in place of each other; OpenSSL does not.
 */
export function permitsPurpose(
  { contents }: Pick<Certificate, 'contents'>,
  purpose: Purpose,
): boolean {
  const permitted = readKeyPurposes(contents.extensions)
  return (
    permitted === null ||
    [purposeOids[purpose], purposeOids.any].some((one) => permitted.includes(one))
  )
}

/** @throws {CertificateError} `wrong-usage` unless {@link permitsPurpose}. */
export function checkPurpose(certificate: Certificate, purpose: Purpose): void {
  if (permitsPurpose(certificate, purpose)) return
  throw new CertificateError('wrong-usage', `its extended key usage lacks ${purpose}`)
}
