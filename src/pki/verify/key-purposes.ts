import { readKeyPurposes } from '../asn1/extensions.ts'
import { purposeOids } from '../asn1/object-identifiers.ts'
import { type Certificate, CertificateError } from '../certificate.ts'

type Purpose = 'serverAuth' | 'clientAuth'

/**
 * The needed purposes that the extended key usage of a certificate does not list (RFC 5280,
 * 4.2.1.12), even if it lists `anyExtendedKeyUsage`; none for a certificate without this extension,
 * which permits every purpose.
 */
export function missingPurposes(
  { contents }: Pick<Certificate, 'contents'>,
  needed: readonly Purpose[],
): readonly Purpose[] {
  const permitted = readKeyPurposes(contents.extensions)
  return permitted === null ? [] : needed.filter((name) => !permitted.includes(purposeOids[name]))
}

/**
 * Whether a certificate permits a purpose, also by `anyExtendedKeyUsage`. In certificates of
 * clients and routers, controllers and OpenZiti accept `anyExtendedKeyUsage` in place of any other
 * purpose; OpenSSL does not.
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
