import {
  contextTag,
  DerError,
  DerReader,
  derTag,
  readOnlyDerValue,
  encodeTagged,
} from './asn1/der.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  isSelfIssued,
  parseCertificate,
} from './certificate.ts'

/** The encoded object identifiers of two PKCS #7 content types (RFC 5652). */
const SIGNED_DATA = Buffer.from('06092a864886f70d010702', 'hex')
const DATA = Buffer.from('06092a864886f70d010701', 'hex')

/**
 * Encodes certificates as unsigned PKCS #7 SignedData without other content (RFC 7030, 4.1.3), in
 * BER. Each certificate is included once, roots last: clients keep this order.
 */
export function encodeCertsOnlyPkcs7(certificates: readonly Certificate[]): Buffer {
  const each = new Map(sortRootsLast(certificates).map(({ sha256, der }) => [sha256, der]))
  const ders = [...each.values()]
  return encodeTagged(derTag.sequence, SIGNED_DATA, [
    contextTag(0),
    [
      derTag.sequence,
      [derTag.integer, Buffer.from([1])],
      [derTag.set],
      [derTag.sequence, DATA],
      [contextTag(0), ...ders],
      [derTag.set],
    ],
  ])
}

/**
 * Puts the roots last. The OpenZiti C SDK ignores the first CA certificate when it logs in with an
 * identity file of OpenZiti's CLI (whose text begins with `pem:`). So the first certificate must be
 * one that a server sends in its chain anyway.
 */
export function sortRootsLast(certificates: readonly Certificate[]): readonly Certificate[] {
  return [
    ...certificates.filter((one) => !isSelfIssued(one)),
    ...certificates.filter((one) => isSelfIssued(one)),
  ]
}

/**
 * Reads the certificates of a PKCS #7 message from an untrusted source; signatures on the message
 * are ignored.
 * @throws {CertificateError} `unreadable`, also when it contains more certificates than a CA file
 * may contain.
 */
export function readCertsOnly(der: Uint8Array): Certificate[] {
  const certificates: Certificate[] = []
  try {
    const outer = new DerReader(readOnlyDerValue(der, derTag.sequence).contents)
    if (!outer.next().whole.equals(SIGNED_DATA)) throw new DerError('it is no signed data')
    const wrapped = outer.take(contextTag(0))
    outer.end()
    const data = new DerReader(readOnlyDerValue(wrapped.contents, derTag.sequence).contents)
    data.take(derTag.integer)
    data.take(derTag.set)
    data.take(derTag.sequence)
    const list = new DerReader(data.take(contextTag(0)).contents)
    while (!list.isAtEnd) {
      if (certificates.length === BUNDLE_CERTIFICATES_MAX) throw new DerError('too many')
      certificates.push(parseCertificate(list.take(derTag.sequence).whole))
    }
  } catch (error) {
    if (!(error instanceof DerError)) throw error
    throw new CertificateError('unreadable', 'not a PKCS #7 text of certificates', error)
  }
  return certificates
}
