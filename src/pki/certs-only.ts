import type { Certificate } from './certificate.ts'

/** Tags of DER (X.690) and the two object identifiers of PKCS #7 (RFC 5652), encoded. */
const INTEGER = 0x02
const SEQUENCE = 0x30
const SET = 0x31
/** [0], constructed. */
const CONTEXT_0 = 0xa0
const SIGNED_DATA = Buffer.from('06092a864886f70d010702', 'hex')
const DATA = Buffer.from('06092a864886f70d010701', 'hex')

function tagged(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content])
}

/** Below 128 one byte; else the number of bytes, then those. */
function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes])
}

/**
 * Certificates as PKCS #7 SignedData that nobody signed, which carries nothing else (RFC 7030, 4.1.3), in DER. Each once,
 * in the order that DER has for a set.
 */
export function certsOnly(certificates: readonly Certificate[]): Buffer {
  const each = new Map(certificates.map(({ sha256, der }) => [sha256, der]))
  const ders = [...each.values()].sort((a, b) => Buffer.compare(a, b))
  return tagged(
    SEQUENCE,
    SIGNED_DATA,
    tagged(
      CONTEXT_0,
      tagged(
        SEQUENCE,
        tagged(INTEGER, Buffer.from([1])),
        tagged(SET),
        tagged(SEQUENCE, DATA),
        tagged(CONTEXT_0, ...ders),
        tagged(SET),
      ),
    ),
  )
}
