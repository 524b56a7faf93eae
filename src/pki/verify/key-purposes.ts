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

/** @throws {CertificateError} `wrong-usage`. */
export function checkPurpose(certificate: Certificate, purpose: Purpose): void {
  if (missingPurposes(certificate, [purpose]).length === 0) return
  throw new CertificateError('wrong-usage', `its extended key usage lacks ${purpose}`)
}
