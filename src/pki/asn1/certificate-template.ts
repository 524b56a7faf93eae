import { contextTag, derTag, type DerTree, encodeTagged, encodeUnsignedInteger } from './der.ts'

/** Contents of a certificate to be issued (RFC 5280, 4.1); names, key and algorithm in DER. */
interface CertificateTemplate {
  /** Serial number, big-endian, not negative. */
  readonly serial: Uint8Array
  /** DER of an AlgorithmIdentifier. */
  readonly signatureAlgorithm: Uint8Array
  readonly issuer: Uint8Array
  /** UTC ms; certificates hold whole seconds. */
  readonly notBeforeMs: number
  readonly notAfterMs: number
  readonly subject: Uint8Array
  readonly spki: Uint8Array
  readonly extensions: readonly DerTree[]
}

const VERSION_3: DerTree = [contextTag(0), [derTag.integer, Uint8Array.of(2)]]

/** Encodes the part to be signed (TBSCertificate). */
export function encodeTbsCertificate(template: CertificateTemplate): Buffer {
  const { serial, signatureAlgorithm, issuer, subject, spki, extensions } = template
  const validity = [encodeTime(template.notBeforeMs), encodeTime(template.notAfterMs)]
  return encodeTagged(
    derTag.sequence,
    VERSION_3,
    encodeUnsignedInteger(serial),
    signatureAlgorithm,
    issuer,
    [derTag.sequence, ...validity],
    subject,
    spki,
    [contextTag(3), [derTag.sequence, ...extensions]],
  )
}

/**
 * @param tbs encoded TBSCertificate.
 * @param signatureAlgorithm encoded AlgorithmIdentifier.
 * @returns DER.
 */
export function encodeCertificate(
  tbs: Uint8Array,
  signatureAlgorithm: Uint8Array,
  signature: Uint8Array,
): Buffer {
  const bits: DerTree = [derTag.bitString, Uint8Array.of(0), signature]
  return encodeTagged(derTag.sequence, tbs, signatureAlgorithm, bits)
}

const ZERO = 0x30
const ZULU = 0x5a

/**
 * Encodes a time as UTCTime (two-digit year) through 2049, and as GeneralizedTime (four-digit year)
 * after that (RFC 5280, 4.1.2.5).
 */
function encodeTime(ms: number): DerTree {
  const date = new Date(ms)
  const year = date.getUTCFullYear()
  const parts = [
    year % 100,
    date.getUTCMonth() + 1,
    date.getUTCDate(),
    date.getUTCHours(),
    date.getUTCMinutes(),
    date.getUTCSeconds(),
  ]
  const digits = parts.flatMap((part) => [ZERO + Math.floor(part / 10), ZERO + (part % 10)])
  if (year < 2050) return [derTag.utcTime, Uint8Array.from([...digits, ZULU])]
  const century = Math.floor(year / 100)
  const first = [ZERO + Math.floor(century / 10), ZERO + (century % 10)]
  return [derTag.generalizedTime, Uint8Array.from([...first, ...digits, ZULU])]
}
