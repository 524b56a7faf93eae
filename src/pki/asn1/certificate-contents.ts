import {
  contextTag,
  DerError,
  DerReader,
  derTag,
  readOnlyDerValue,
  readBitStringBytes,
} from './der.ts'
import { type DistinguishedName, readDistinguishedName } from './distinguished-name.ts'
import { type Extensions, readExtensions } from './extensions.ts'

/** Contents of a certificate (RFC 5280, 4.1), as views of its bytes. */
export interface CertificateContents {
  /** TBSCertificate: the bytes that the issuer signed. */
  readonly tbs: Buffer
  readonly signature: Buffer
  /** DER of an AlgorithmIdentifier. */
  readonly signatureAlgorithm: Buffer
  /** Issuer name in DER: two names are equal if their bytes are equal. */
  readonly issuer: Buffer
  readonly subject: DistinguishedName
  readonly spki: Buffer
  readonly extensions: Extensions
}

const none: Extensions = new Map()

/** @throws {DerError} */
export function readCertificate(der: Uint8Array): CertificateContents {
  const outer = new DerReader(readOnlyDerValue(der, derTag.sequence).contents)
  const tbs = outer.take(derTag.sequence)
  const signatureAlgorithm = outer.take(derTag.sequence).whole
  const signature = readBitStringBytes(outer.take(derTag.bitString))
  outer.end()
  const reader = new DerReader(tbs.contents)
  reader.optional(contextTag(0))
  reader.take(derTag.integer)
  const signedAlgorithm = reader.take(derTag.sequence).whole
  if (!signedAlgorithm.equals(signatureAlgorithm)) {
    // The signature does not cover the outer algorithm, so an attacker could replace it. It must
    // equal the signed inner algorithm, which determines how the signature is verified.
    throw new DerError('two different signature algorithms')
  }
  const issuer = reader.take(derTag.sequence).whole
  reader.take(derTag.sequence)
  const subject = readDistinguishedName(reader.take(derTag.sequence))
  const spki = reader.take(derTag.sequence).whole
  reader.optional(contextTag(1, false))
  reader.optional(contextTag(2, false))
  const extensions = reader.optional(contextTag(3))
  reader.end()
  return {
    tbs: tbs.whole,
    signature,
    signatureAlgorithm,
    issuer,
    subject,
    spki,
    extensions:
      extensions === null
        ? none
        : readExtensions(readOnlyDerValue(extensions.contents, derTag.sequence)),
  }
}
