import { contextTag, derTag, tagged } from './asn1/der.ts'
import type { Certificate } from './certificate.ts'

/** The two object identifiers of PKCS #7 (RFC 5652), encoded. */
const SIGNED_DATA = Buffer.from('06092a864886f70d010702', 'hex')
const DATA = Buffer.from('06092a864886f70d010701', 'hex')

/**
 * Certificates as PKCS #7 SignedData that nobody signed, which carries nothing else (RFC 7030, 4.1.3), in DER. Each once,
 * in the order that DER has for a set.
 */
export function certsOnly(certificates: readonly Certificate[]): Buffer {
  const each = new Map(certificates.map(({ sha256, der }) => [sha256, der]))
  const ders = [...each.values()].sort((a, b) => Buffer.compare(a, b))
  return tagged(
    derTag.sequence,
    SIGNED_DATA,
    tagged(
      contextTag(0),
      tagged(
        derTag.sequence,
        tagged(derTag.integer, Buffer.from([1])),
        tagged(derTag.set),
        tagged(derTag.sequence, DATA),
        tagged(contextTag(0), ...ders),
        tagged(derTag.set),
      ),
    ),
  )
}
