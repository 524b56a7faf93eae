import { hash } from 'node:crypto'

import { readCertificate } from '../../pki/asn1/certificate-contents.ts'
import { DerError, derTag, readOnlyDerValue } from '../../pki/asn1/der.ts'
import { isNameWithin, readDistinguishedName } from '../../pki/asn1/distinguished-name.ts'
import { readAuthorityKeyId, readSubjectKeyId } from '../../pki/asn1/extensions.ts'
import { isAllowedKey, inspectKey } from '../../pki/asn1/key-info.ts'
import { isSignedBy, readSignatureAlgorithm } from '../../pki/asn1/signature.ts'
import {
  type Certificate,
  CHAIN_CERTIFICATES_MAX,
  parseCertificate,
  parseCertificates,
} from '../../pki/certificate.ts'
import { readPemBlocks } from '../../pki/pem.ts'
import type { Conversion } from './conversion.ts'
import type { StoredRecord } from './stored-record.ts'

/** The parts of a stored certificate that a migration uses. */
export type StoredCertificate = Pick<Certificate, 'der' | 'contents' | 'sha1' | 'publicKeySha256'>

/**
 * A stored PEM string, which contains a certificate and, optionally, the certificates of its
 * authorities after it.
 */
export interface CertificateText<C extends StoredCertificate = Certificate> {
  readonly pem: string
  readonly certificate: C
}

/**
 * Reads a certificate, if possible without Node's `X509Certificate`: its 8 KB outside of the heap
 * are freed only by a full garbage collection, and a large network has 100,000 certificates.
 * @param sha1 SHA-1 that OpenZiti stored with the certificate.
 * @returns null, with a finding, if there is no readable certificate.
 */
export function readCertificateWithSha1(
  record: StoredRecord,
  name: string,
  pem: string,
  sha1: string,
): StoredCertificate | null {
  return recordedCertificate(pem, sha1) ?? parseStoredCertificate(record, name, pem)
}

/**
 * Parses a certificate without Node. The stored SHA-1 proves that OpenZiti could parse the
 * certificate. Null if the SHA-1 differs, if the certificate is unreadable, or if its key is not
 * encoded as in the keys with which this program compares it.
 */
function recordedCertificate(pem: string, stored: string): StoredCertificate | null {
  const [block] = readPemBlocks(pem, CHAIN_CERTIFICATES_MAX)
  if (block?.label !== 'CERTIFICATE') return null
  const { der } = block
  const sha1 = hash('sha1', der)
  if (sha1 !== stored.toLowerCase()) return null
  try {
    const contents = readCertificate(der)
    if (!isAllowedKey(inspectKey(contents.spki))) return null
    return {
      der,
      contents,
      sha1,
      publicKeySha256: Uint8Array.from(hash('sha256', contents.spki, 'buffer')),
    }
  } catch (error) {
    if (error instanceof DerError) return null
    throw error
  }
}

/** Reads the certificate in a field; null, with a finding, if the string contains none. */
export function readCertificateText(
  record: StoredRecord,
  name: string,
  pem: string,
): CertificateText | null {
  const certificate = parseStoredCertificate(record, name, pem)
  return certificate === null ? null : { pem, certificate }
}

/**
 * The certificate that was issued to the record's owner but that the owner has not used yet.
 * @param sha1Name field with the certificate's SHA-1.
 */
export function readNextCertificate(
  record: StoredRecord,
  sha1Name: string,
): CertificateText<StoredCertificate> | null {
  const name = 'unverifiedCertPem'
  const pem = record.text(name) ?? ''
  if (pem === '') return null
  const certificate = readCertificateWithSha1(record, name, pem, record.text(sha1Name) ?? '')
  return certificate === null ? null : { pem, certificate }
}

/** The first certificate in a PEM string; null, with a finding, if there is none. */
export function parseStoredCertificate(
  record: StoredRecord,
  name: string,
  pem: string,
): Certificate | null {
  try {
    return parseCertificates(pem)[0]
  } catch {
    record.note('lost', name, 'it is no readable certificate')
    return null
  }
}

/** Id of the third-party CA that signed the certificate; '' if none of the CAs signed it. */
export function issuingAuthorityId(
  leaf: StoredCertificate,
  { authorities }: Pick<Conversion, 'authorities'>,
): string {
  for (const [id, authority] of authorities) {
    if (isNamedAsIssuer(leaf, authority) && hasSigned(leaf, authority)) return id
  }
  return ''
}

function hasSigned({ contents, der }: StoredCertificate, { native }: Certificate): boolean {
  const algorithm = readableOrNull(() => readSignatureAlgorithm(contents.signatureAlgorithm))
  // Log-ins refuse an unsupported signature algorithm. Here, Node verifies the signature, so that
  // the certificate still counts as issued by the CA.
  if (algorithm === null || typeof algorithm === 'string') {
    return parseCertificate(der).native.verify(native.publicKey)
  }
  return isSignedBy(native.publicKey, algorithm, contents.tbs, contents.signature)
}

/**
 * Counts a certificate of the network, and reports it if none of the network's authorities issued
 * it. Compares only names and key ids, which is enough to detect files of different networks;
 * controllers verify the signatures later.
 */
export function checkIssuer(
  record: StoredRecord,
  certificate: Pick<StoredCertificate, 'contents'>,
  { networkAuthorities, report }: Conversion,
): void {
  const { certificates } = report
  if (networkAuthorities.some((authority) => isNamedAsIssuer(certificate, authority))) {
    certificates.issued += 1
    return
  }
  certificates.foreign += 1
  const reason =
    'no authority in the configurations issued it; add the CA certificate of its issuer to identity.ca of the controllers, or enroll it again'
  record.note('decide', 'certPem', reason)
}

/**
 * Whether a certificate names this authority as its issuer and, if both state a key id, this
 * authority's key.
 */
function isNamedAsIssuer(
  { contents }: Pick<StoredCertificate, 'contents'>,
  authority: Pick<StoredCertificate, 'contents'>,
): boolean {
  const { subject, extensions } = authority.contents
  const isNamed =
    contents.issuer.equals(subject.der) ||
    readableOrNull(() => {
      const issuer = readDistinguishedName(readOnlyDerValue(contents.issuer, derTag.sequence))
      return isNameWithin(issuer, subject) && isNameWithin(subject, issuer)
    }) === true
  if (!isNamed) return false
  const wanted = readableOrNull(() => readAuthorityKeyId(contents.extensions))
  const own = readableOrNull(() => readSubjectKeyId(extensions))
  return wanted === null || own === null || wanted.equals(own)
}

/** The result of the function; null if it throws because the bytes are invalid. */
function readableOrNull<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof DerError) return null
    throw error
  }
}
